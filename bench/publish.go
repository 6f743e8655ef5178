package main

import (
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// This text is the section before the last one. The script scripts/states measures its figures.
//
//go:embed states.md
var states string

// This text is the section after the measurements: the limit that a lock cannot beat.
//
//go:embed limit.md
var limit string

// This text is the last section, about what each thing costs, and where one group ends.
//
//go:embed growth.md
var growth string

// publish writes the record, the page and the picture to dir. If dir is "", it prints the page.
func publish(r Record, dir string) error {
	sections := []string{page(r), limit, states, growth}
	page := strings.Join(sections, "\n")
	if dir == "" {
		_, err := os.Stdout.WriteString(page)
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "speed.json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "SPEED.md"), []byte(page), 0o644),
		os.WriteFile(filepath.Join(dir, "speed.svg"), []byte(picture(r)), 0o644),
	)
}

func readRecord(path string) (r Record, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}
