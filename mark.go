package mortise

import (
	"bytes"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file is how the mark of Hooks.Mark travels with a lock: in front of the value of its request, which the group keeps unread. Whoever shows a
// value to people takes it apart first, so that users see theirs and nothing else.
//
//	value                                 without a mark
//	\xff \x00 m k, len(mark), mark, value with one, or if the value happens to begin with these four bytes

const (
	markSign  = "\xff\x00mk" // no text begins so
	markBytes = 64           // most of a mark
)

// pack puts a mark in front of a value. A mark that is too long, or for which there is no room, is left out: a link of a trace is no reason to
// refuse a lock.
func pack(mark []byte, value string) []byte {
	plain := !bytes.HasPrefix([]byte(value), []byte(markSign))
	if len(mark) > markBytes || len(markSign)+1+len(mark)+len(value) > lockfsm.MaxValueBytes {
		mark = nil
	}
	if len(mark) == 0 && plain {
		return []byte(value)
	}
	packed := append([]byte(markSign), byte(len(mark)))
	return append(append(packed, mark...), value...)
}

// unpack takes apart what pack has made. What nobody can have made is a value.
func unpack(packed []byte) (mark []byte, value string) {
	rest, ok := bytes.CutPrefix(packed, []byte(markSign))
	if !ok || len(rest) == 0 || len(rest) < 1+int(rest[0]) || rest[0] > markBytes {
		return nil, string(packed)
	}
	n := 1 + int(rest[0])
	return rest[1:n:n], string(rest[n:])
}

// shown is the part of a value that people see.
func shown(packed []byte) string {
	_, value := unpack(packed)
	return value
}
