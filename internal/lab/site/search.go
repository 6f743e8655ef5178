package main

import (
	"encoding/json"
	"fmt"
)

// found is one section in the index of the search. The script of the site reads it.
type found struct {
	Page    string `json:"p"` // the file
	Anchor  string `json:"a"`
	Title   string `json:"t"` // of the page
	Heading string `json:"h"`
	Text    string `json:"x"`
}

// indexOf returns the index of all sections as a script, which a page can load from a file, too.
func indexOf(pages []rendered) ([]byte, error) {
	var all []found
	for _, p := range pages {
		for _, s := range p.sections {
			all = append(all, found{Page: p.file, Anchor: s.anchor, Title: p.title, Heading: s.title, Text: s.text})
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "window.siteIndex = %s;\n", text), nil
}
