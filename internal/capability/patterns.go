package capability

import (
	"slices"
	"strings"
)

// right is one line of a text.
type right struct {
	verb   Verb
	key    string // decoded key, or a prefix of keys
	prefix bool
}

// patterns are the patterns of one verb, in an order in which a check is two binary searches. A
// request has up to 256 keys, and a replica checks each of them.
type patterns struct {
	keys     []string // ascending
	prefixes []string // ascending, none with another as its prefix
}

// patternsOf returns the patterns of each verb.
func patternsOf(rights []right) (all [Force + 1]patterns) {
	for _, r := range rights {
		p := &all[r.verb]
		if r.prefix {
			p.prefixes = append(p.prefixes, r.key)
		} else {
			p.keys = append(p.keys, r.key)
		}
	}
	for i := range all {
		p := &all[i]
		slices.Sort(p.keys) // escaped bytes have another order in the text
		slices.Sort(p.prefixes)
		kept := p.prefixes[:0]
		for _, prefix := range p.prefixes {
			if n := len(kept); n == 0 || !strings.HasPrefix(prefix, kept[n-1]) {
				kept = append(kept, prefix)
			}
		}
		p.keys, p.prefixes = slices.Clip(p.keys), slices.Clip(kept)
	}
	return all
}

func (p *patterns) match(key string) bool {
	_, found := slices.BinarySearch(p.keys, key)
	return found || p.cover(key)
}

// cover reports whether one of the prefixes is a prefix of key. Only the last prefix that is not
// above key can be one: another that begins key would be a prefix of it.
func (p *patterns) cover(key string) bool {
	i, found := slices.BinarySearch(p.prefixes, key)
	return found || i > 0 && strings.HasPrefix(key, p.prefixes[i-1])
}
