// Package try is the simulation that people try in a browser: a [sim.Show] with the address in
// which a run can be shared. The page is docs/try/index.html. Package wasm runs a Show for it, and
// the command line replays what a page has shown:
//
//	go run ./internal/lab/try/replay 'seed=7&do=4200k0,9000s0&end=20000'
//
// A run is a function of its address, so both end with the same line. That holds for the same build
// on amd64 and in a browser. On processors that fuse floating-point operations, clocks may differ
// in the last bit.
package try

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/sim"
)

// Limits of an address, so that a page does not hang.
const (
	MaxActs = 1000
	MaxTime = time.Hour
)

// Address is a run that can be repeated.
type Address struct {
	Seed uint64
	Acts []Act         // in the order of time
	End  time.Duration // when the judges are asked; zero means that the run goes on
}

// Act is an act at a moment, counted from the beginning of the run.
type Act struct {
	At      time.Duration
	Act     sim.Act
	Machine int
}

// Parse reads an address. Times are whole milliseconds.
func Parse(text string) (a Address, err error) {
	values, err := url.ParseQuery(strings.TrimPrefix(text, "#"))
	if err != nil {
		return a, fmt.Errorf("the address %q: %w", text, err)
	}
	if a.Seed, err = strconv.ParseUint(values.Get("seed"), 10, 63); err != nil {
		return a, fmt.Errorf("seed is a number from 0 on, not %q", values.Get("seed"))
	}
	if values.Has("end") {
		if a.End, err = parseTime(values.Get("end")); err != nil {
			return a, fmt.Errorf("end: %w", err)
		}
	}
	if values.Get("do") == "" {
		return a, nil
	}
	all := strings.Split(values.Get("do"), ",")
	if len(all) > MaxActs {
		return a, fmt.Errorf("do: at most %d acts, not %d", MaxActs, len(all))
	}
	for _, one := range all {
		act, err := parseAct(one)
		switch {
		case err != nil:
			return a, fmt.Errorf("do: %q: %w", one, err)
		case len(a.Acts) > 0 && act.At < a.Acts[len(a.Acts)-1].At:
			return a, fmt.Errorf("do: %q comes before the act to its left", one)
		case a.End != 0 && act.At > a.End:
			return a, fmt.Errorf("do: %q comes after the end", one)
		}
		a.Acts = append(a.Acts, act)
	}
	return a, nil
}

var errAct = errors.New("an act is a time in milliseconds, a letter (k kill, s start, c cut or link, p pause, " +
	"d disk) and a machine from 0 to 2, as in 4200k0")

func parseAct(text string) (Act, error) {
	if len(text) < 3 {
		return Act{}, errAct
	}
	last := len(text) - 1
	at, err := parseTime(text[:last-1])
	if err != nil {
		return Act{}, err
	}
	act := Act{At: at, Act: sim.Act(text[last-1]), Machine: int(text[last]) - '0'}
	if !strings.ContainsRune("kscpd", rune(act.Act)) || act.Machine < 0 || act.Machine >= sim.ShowMachines {
		return Act{}, errAct
	}
	return act, nil
}

func parseTime(text string) (time.Duration, error) {
	ms, err := strconv.ParseUint(text, 10, 32)
	at := time.Duration(ms) * time.Millisecond
	if err != nil || at > MaxTime {
		return 0, fmt.Errorf("a time is a number of milliseconds up to %d, not %q", MaxTime.Milliseconds(), text)
	}
	return at, nil
}

func (a Address) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed=%d", a.Seed)
	for i, act := range a.Acts {
		b.WriteString(map[bool]string{true: "&do=", false: ","}[i == 0])
		fmt.Fprintf(&b, "%d%c%d", act.At.Milliseconds(), act.Act, act.Machine)
	}
	if a.End != 0 {
		fmt.Fprintf(&b, "&end=%d", a.End.Milliseconds())
	}
	return b.String()
}

// Begin returns the Show of a seed. It replaces the random numbers of the process by ones that
// depend on the seed, so a process has one Show at a time.
func Begin(seed uint64) *sim.Show {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	rand.Reader = mathrand.NewChaCha8(key) // raft draws its election timeouts from it
	return sim.NewShow(seed)
}

// Replay runs an address and returns what has happened, and the last line.
func Replay(a Address) (lines []sim.Line, last string) {
	s := Begin(a.Seed)
	for _, act := range a.Acts {
		s.Pass(act.At)
		s.Do(act.Act, act.Machine)
	}
	s.Pass(a.End)
	lines = s.Lines()
	return lines, s.End()
}
