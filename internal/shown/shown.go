// Package shown is the text form of what a holder shows to others: its value, its labels, and the
// mark of its trace travel together as the one value of its request.
//
// A value alone is its own form. All else begins with a byte that a value alone does not begin
// with, and JSON follows.
package shown

import "encoding/json"

// formed is the first byte where JSON follows.
const formed = 0

type form struct {
	Value  []byte            `json:"v,omitempty"`
	Labels map[string]string `json:"l,omitempty"`
	Mark   []byte            `json:"m,omitempty"` // of Hooks.Mark
}

// Encode returns the bytes that travel.
func Encode(value string, labels map[string]string, mark []byte) []byte {
	if len(labels) == 0 && len(mark) == 0 && (value == "" || value[0] != formed) {
		return []byte(value)
	}
	b, err := json.Marshal(form{Value: []byte(value), Labels: labels, Mark: mark})
	if err != nil { // strings always marshal
		return nil
	}
	return append([]byte{formed}, b...)
}

// Decode takes value and labels apart. Bytes of another form are a value.
func Decode(b []byte) (value string, labels map[string]string) {
	f, ok := read(b)
	if !ok {
		return string(b), nil
	}
	return string(f.Value), f.Labels
}

// MarkOf returns the mark, or nil.
func MarkOf(b []byte) []byte {
	f, _ := read(b)
	return f.Mark
}

func read(b []byte) (f form, ok bool) {
	if len(b) == 0 || b[0] != formed {
		return form{}, false
	}
	if json.Unmarshal(b[1:], &f) != nil {
		return form{}, false
	}
	return f, true
}
