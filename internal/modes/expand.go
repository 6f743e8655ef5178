package modes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Asked is what a request locks, in the terms of the group. The fields are those of
// lockfsm.Command.
type Asked struct {
	Keys        []string // ascending, and none twice
	Modes       []lockfsm.Mode
	Permits, Of uint32
}

// Expand returns what the parts lock, including the nodes above those with Tree. If a key is named
// several times, it gets the weakest mode that includes all of them. Permits count only for a
// single part.
func Expand(parts []Part) (a Asked) {
	if n, of := parts[0].Mode.Permits(); of != 0 {
		return Asked{Keys: []string{parts[0].Key}, Permits: uint32(n), Of: uint32(of)}
	}
	all := make(map[string]lockfsm.Mode, len(parts))
	include := func(key string, m lockfsm.Mode) {
		if has, named := all[key]; named {
			m = join(has, m)
		}
		all[key] = m
	}
	for i := range parts {
		p := &parts[i]
		for node := range p.nodesAbove {
			include(node, p.above())
		}
		include(p.Key, p.own())
	}
	a.Keys = slices.Sorted(maps.Keys(all))
	for _, key := range a.Keys {
		a.Modes = append(a.Modes, all[key])
	}
	only := func(m lockfsm.Mode) bool {
		return !slices.ContainsFunc(a.Modes, func(o lockfsm.Mode) bool { return o != m })
	}
	switch {
	case only(lockfsm.ModeX):
		a.Modes = nil
	case only(lockfsm.ModeIS):
		a.Modes, a.Permits = nil, 1
	}
	return a
}

// nodesAbove yields the keys of the nodes above a part with Tree, from the root down.
func (p *Part) nodesAbove(yield func(string) bool) {
	if !p.Tree {
		return
	}
	for i := range len(p.Key) {
		if p.Key[i] == '/' && !yield(p.Key[:i]) {
			return
		}
	}
}

// join returns the weakest mode that includes both.
func join(a, b lockfsm.Mode) lockfsm.Mode {
	switch {
	case a == b || b == lockfsm.ModeIS:
		return a
	case a == lockfsm.ModeIS:
		return b
	}
	return lockfsm.ModeX
}

// CoveredBy reports whether the hold has excludes all that the part would exclude. Only then may
// the part enter the hold: its caller must be as alone as after a grant of its own. Permits are not
// covered, because each of them counts. A node that the hold has in a mode which includes that of
// the part includes it with all nodes below.
func (p *Part) CoveredBy(has *lockfsm.Grant) bool {
	if _, of := p.Mode.Permits(); of != 0 {
		return false
	}
	covers := func(key string, want lockfsm.Mode) bool {
		m, included := has.Mode(key)
		return included && m.Covers(want)
	}
	for node := range p.nodesAbove {
		if !covers(node, p.above()) {
			return false
		}
		if covers(node, p.own()) {
			return true
		}
	}
	return covers(p.Key, p.own())
}

// Readers returns the modes of a downgrade of a hold of these parts, after which each part is
// shared. An exclusive key that is also above a tree of the hold is then shared together with all
// keys below. Otherwise it would only be a node above that tree, and events would report that it
// was released.
func Readers(parts []Part) []lockfsm.Mode {
	lowered := slices.Clone(parts)
	for i := range lowered {
		lowered[i].Mode = Shared
	}
	before, a := Expand(parts), Expand(lowered) // for the same keys
	if a.Modes == nil {
		a.Modes = slices.Repeat([]lockfsm.Mode{lockfsm.ModeIS}, len(a.Keys))
	}
	for i, key := range a.Keys {
		exclusive := before.Modes == nil && before.Permits == 0 || before.Modes != nil && before.Modes[i] == lockfsm.ModeX
		above := func(p Part) bool { return p.Tree && strings.HasPrefix(p.Key, key+"/") }
		if exclusive && slices.ContainsFunc(parts, above) {
			a.Modes[i] = lockfsm.ModeS
		}
	}
	return a.Modes
}

// Grant returns what the parts would be granted.
func Grant(parts []Part) lockfsm.Grant {
	a := Expand(parts)
	return lockfsm.Grant{Key: a.Keys[0], Keys: a.Keys[1:], Permits: a.Permits, Of: a.Of, Modes: a.Modes}
}

// Check returns why a request cannot have these parts, or nil. The first part is its Key, which is
// the name that errors give it, and delay is its LockDelay.
func Check(parts []Part, delay time.Duration) error {
	first := &parts[0]
	for i := range parts {
		p := &parts[i]
		name := ""
		if i > 0 {
			name = fmt.Sprintf("Also[%d].", i-1)
		}
		if err := cmp.Or(p.Mode.Check(), p.Fault()); err != nil {
			return fmt.Errorf("%s%w", name, err)
		}
		_, of := p.Mode.Permits()
		alone := len(parts) == 1 && !p.Tree
		switch {
		case of != 0 && !alone:
			return fmt.Errorf("%sMode is %s, with Tree or Also: a waiting request takes permits of every queue in which it "+
				"fits, so it would block others while it waits for another key: nest the requests, the narrowest limit "+
				"first", name, p.Mode.Text())
		case p.Mode == Upgradable && !alone:
			return fmt.Errorf("%sMode is upgradable, with Tree or Also: two upgrades of several keys would wait for each "+
				"other: request one key, or make the lock exclusive", name)
		}
	}
	if first.Mode == Upgradable && delay != 0 {
		return errors.New("LockDelay of an upgradable request: an upgrade could wait for the hold of a holder that is " +
			"gone: request it exclusive or shared")
	}
	if n := len(Expand(parts).Keys); n > lockfsm.MaxKeys {
		return fmt.Errorf("Also and Tree make %d keys with the nodes above; at most %d can be locked at once", n,
			lockfsm.MaxKeys)
	}
	return nil
}
