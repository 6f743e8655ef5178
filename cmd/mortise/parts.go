package main

import (
	"strings"

	"github.com/mortise-lock/mortise"
)

// partOf parses the value of the flag -also: a key, then ",mode=MODE", then ",tree". Each of the
// last two may be missing.
func partOf(text string) (p mortise.Part, err error) {
	text, p.Tree = strings.CutSuffix(text, ",tree")
	key, mode, found := text, "", false
	if i := strings.LastIndex(text, ",mode="); i >= 0 {
		key, mode, found = text[:i], text[i+len(",mode="):], true
	}
	if p.Key = key; found {
		err = p.Mode.UnmarshalText([]byte(mode))
	}
	return p, err
}

// partsText describes how a request locks its keys. The key of the first part is named only if the
// request is for a tree, because it stands beside.
func partsText(p mortise.Part, also []mortise.Part) string {
	text := p.Mode.String()
	if p.Tree {
		text += " tree " + keyText(p.Key)
	}
	for i, o := range also {
		text += []string{" with ", ", "}[min(i, 1)] + keyText(o.Key)
		if o.Tree {
			text += " (" + o.Mode.String() + " tree)"
		} else if o.Mode != mortise.Exclusive {
			text += " (" + o.Mode.String() + ")"
		}
	}
	return text
}

func keyText(key string) string {
	if key == "" {
		return "a key outside these rights"
	}
	return key
}
