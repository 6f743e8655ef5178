package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestAPictureHasEachLine checks that a picture is XML, has the lines in their order and colours,
// and shows each when it was printed.
func TestAPictureHasEachLine(t *testing.T) {
	p := picture{title: "try <it>", bad: regexp.MustCompile("killed"), good: regexp.MustCompile("granted"),
		lines: []line{{time.Second, "a & b"}, {2 * time.Second, ""}, {3 * time.Second, "b is killed"},
			{6 * time.Second, "c is granted"}, {6 * time.Second, ""}}}
	var b strings.Builder
	if err := p.write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	at := 0
	for _, want := range []string{"10.0s linear infinite", "l1{0%,10.00%{opacity:0}10.01%,100%{opacity:1}}",
		"l3{0%,30.00%", `class="l0 command"`, "$ try &lt;it&gt;", "a &amp; b", `class="l3 bad"`, `class="l4 good"`} {
		next := strings.Index(text[at:], want)
		if next < 0 {
			t.Fatalf("no %q behind byte %d of\n%s", want, at, text)
		}
		at += next
	}
	if strings.Contains(text, "l2{") || strings.Contains(text, "l5{") {
		t.Error("an empty line is shown")
	}
}

// TestTheRecordedCommand records a command, and refuses what cannot be recorded.
func TestTheRecordedCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.svg")
	if err := run(&picture{title: "echo"}, "", "", file, []string{"echo", "one"}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), ">one</text>") {
		t.Errorf("%s, %v", text, err)
	}
	for _, args := range [][]string{nil, {"false"}, {"/no/such/command"}} {
		if run(&picture{}, "", "", file, args) == nil {
			t.Errorf("%q is recorded", args)
		}
	}
	if run(&picture{}, "(", "", file, []string{"echo"}) == nil {
		t.Error("a wrong expression is accepted")
	}
}
