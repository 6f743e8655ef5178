// Package shown encodes what a holder shows to others: its value, its labels, and its trace parent
// are sent together as the one value of its request.
//
// A value without labels and trace parent is its own encoding. Any other encoding begins with a
// byte that such a value does not begin with, followed by JSON.
package shown

import "encoding/json"

// formed is the first byte of an encoding with JSON.
const formed = 0

type form struct {
	Value  []byte            `json:"v,omitempty"`
	Labels map[string]string `json:"l,omitempty"`
	Mark   []byte            `json:"m,omitempty"` // of Hooks.Mark
}

// Encode returns the value of the request.
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

// Decode returns value and labels. Bytes in another form are a value.
func Decode(b []byte) (value string, labels map[string]string) {
	f, ok := read(b)
	if !ok {
		return string(b), nil
	}
	return string(f.Value), f.Labels
}

// MarkOf returns the trace parent, or nil.
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
