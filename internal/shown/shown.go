// Package shown encodes the data of a request that other instances can read: the value, the labels,
// and the trace parent. It also names the purposes of locks, which are a label.
//
// A value without labels and trace parent is encoded as itself, unless it begins with the byte
// zero. Any other encoding is the byte zero followed by JSON.
package shown

import "encoding/json"

const formed = 0

type form struct {
	Value  []byte            `json:"v,omitempty"`
	Labels map[string]string `json:"l,omitempty"`
	Mark   []byte            `json:"m,omitempty"` // the trace parent, from Hooks.Mark
}

// Encode returns the encoding of value, labels and trace parent.
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

// Decode returns the value and the labels. Bytes that are not a valid encoding are returned as the
// value.
func Decode(b []byte) (value string, labels map[string]string) {
	f, ok := read(b)
	if !ok {
		return string(b), nil
	}
	return string(f.Value), f.Labels
}

// MarkOf returns the trace parent, or nil if there is none.
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
