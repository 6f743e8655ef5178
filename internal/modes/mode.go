// Package modes defines how the parts of a request lock their keys: the numbers and texts of
// mortise.Mode, and the keys that a request locks with the intentions of its trees. Package mortise
// and the clients that are no members share it.
package modes

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Mode is mortise.Mode. A number of permits has permitsBit, and then the permits and the total,
// each plus one, so that a wrong number stays known.
type Mode uint64

// The modes without permits.
const (
	Exclusive Mode = iota
	Shared
	Upgradable
)

// MaxPermits is the largest total of permits. It fits an int on every platform.
const MaxPermits = 1 << 30

const (
	permitsBit = 1 << 63
	takenShift = 32
	totalMask  = 1<<takenShift - 1
	tooMany    = MaxPermits + 1
)

// Permits returns the mode of n permits out of a total. Wrong numbers make a mode for which Check
// returns an error.
func Permits(n, of int) Mode {
	if n == 1 && of == 1 {
		return Exclusive
	}
	stored := func(n int) Mode { return Mode(min(max(n, -1), tooMany) + 1) }
	return permitsBit | stored(n)<<takenShift | stored(of)
}

// Permits returns the permits and the total of a mode. Both are zero for a mode without permits.
func (m Mode) Permits() (n, of int) {
	if m&permitsBit == 0 {
		return 0, 0
	}
	return int(m&^permitsBit>>takenShift) - 1, int(m&totalMask) - 1
}

// Check returns why the mode is invalid, or nil.
func (m Mode) Check() error {
	n, of := m.Permits()
	switch {
	case m <= Upgradable, 1 <= n && n <= of && 1 < of && of <= MaxPermits:
		return nil
	case m&permitsBit == 0:
		return fmt.Errorf("Mode is the number %d: want Exclusive, Shared, Upgradable or Permits", uint64(m))
	}
	return fmt.Errorf("Mode is Permits(%s, %s): want 1 <= n <= of <= %d", count(n), count(of), MaxPermits)
}

func count(n int) string {
	switch {
	case n < 0:
		return "less than 0"
	case n > MaxPermits:
		return fmt.Sprintf("more than %d", MaxPermits)
	}
	return strconv.Itoa(n)
}

var names = [...]string{"exclusive", "shared", "upgradable"}

// Text returns the text of a valid mode, such as "shared" or "2 of 5".
func (m Mode) Text() string {
	if m <= Upgradable {
		return names[m]
	}
	n, of := m.Permits()
	return fmt.Sprintf("%d of %d", n, of)
}

// Parse returns the mode with a text.
func Parse(text string) (Mode, error) {
	for m, name := range names {
		if text == name {
			return Mode(m), nil
		}
	}
	if n, of, found := strings.Cut(text, " of "); found {
		taken, err := strconv.ParseUint(n, 10, 31)
		total, wrong := strconv.ParseUint(of, 10, 31)
		if m := Permits(int(taken), int(total)); errors.Join(err, wrong, m.Check()) == nil {
			return m, nil
		}
	}
	return 0, fmt.Errorf(`the mode %.64q is none: want "exclusive", "shared", "upgradable" or permits such as "2 of 5", `+
		"of at most %d", text, MaxPermits)
}

// Part is mortise.Part.
type Part struct {
	Key  string
	Mode Mode
	Tree bool
}

// own returns the mode in which the group locks the key of the part, which has no permits.
func (p *Part) own() lockfsm.Mode {
	switch {
	case p.Mode == Upgradable:
		return lockfsm.ModeU
	case p.Mode != Shared:
		return lockfsm.ModeX
	case p.Tree:
		return lockfsm.ModeS
	}
	return lockfsm.ModeIS
}

// above returns the mode in which the group locks the nodes above the part.
func (p *Part) above() lockfsm.Mode {
	if p.Mode == Shared {
		return lockfsm.ModeIS
	}
	return lockfsm.ModeIX
}

// Fault returns why the Tree of the part is wrong, or nil.
func (p *Part) Fault() error {
	if p.Tree && strings.Contains("/"+p.Key+"/", "//") {
		return fmt.Errorf("Tree of the key %.64q, which has an empty part: "+
			"write it without a slash at its ends, and with one slash between two parts", p.Key)
	}
	return nil
}
