package whole

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// The changed runtime. All are nil in any other.
var (
	// reseed makes the process a function of a seed.
	reseed func(seed uint64, yields *[3]uint32, refusals *[8]uint32)
	// refuseNext makes one kind of place refuse work, after it has accepted some. It ends the
	// refusals at random.
	refuseNext func(kind int, skip, count uint32)
	// refuseOnly lets only some of the refusals happen that the seed draws, or all.
	refuseOnly func(*choice)
	// refused returns the first refusals that the seed has drawn.
	refused func() []refusal
)

// refusal and choice have the memory of wholeRefusal and wholeChoice in package native.
type refusal struct {
	kind, happened int32
	at             int64 // in nanoseconds, of the bubble's wall clock
}

type choice struct {
	kinds [8]bool
	times [1024]bool
}

func number(name string, standard uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return standard
}

// TestSeeds runs whole nodes from MORTISE_SEEDS seeds, beginning with MORTISE_SEED.
func TestSeeds(t *testing.T) {
	standard := uint64(20)
	if testing.Short() {
		standard = 6
	}
	first, n := number("MORTISE_SEED", 1), number("MORTISE_SEEDS", standard)
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { once(t, seed) })
	}
}

func once(t *testing.T, seed uint64) {
	dir, remove, err := directory()
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	var out bytes.Buffer
	verbose := os.Getenv("MORTISE_VERBOSE") != ""
	p := planOf(seed)
	only, chosen, err := chosenParts(os.Getenv("MORTISE_ONLY"))
	if err != nil {
		t.Fatal(err)
	}
	stay := p.reduce(only)
	var left *Report
	var transcript io.Writer // a run with one is another run than the same seed without one
	if name := os.Getenv("MORTISE_TRANSCRIPT"); name != "" {
		file, err := os.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		transcript = file
	}
	cryptotest.SetGlobalRandom(t, seed)
	defer func() { // synctest.Test does not return to a test that has failed
		if report := os.Getenv("MORTISE_REPORT"); report != "" && left != nil {
			if err := left.write(report); err != nil {
				t.Error(err)
			}
		}
	}()
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		if reseed != nil {
			reseed(seed, &p.yields, &p.refusals)
			refuseOnly(chosen)
			defer reseed(0, &p.yields, &p.refusals)
		}
		r := newRun(p, dir, &out, verbose)
		r.only, r.shows.parts = only, stay
		if transcript != nil {
			r.out, r.verbose = transcript, true
		}
		bugs := r.play()
		left = r.report(bugs)
		t.Logf("seed %d hash %016x virtual %v lines %d", seed, r.hash.Sum64(),
			time.Since(r.began).Round(time.Millisecond), r.lines)
		if len(bugs) > 0 {
			t.Errorf("seed %d: %d bugs, the first: %s\n%s", seed, len(bugs), bugs[0], tail(out.Bytes(), verbose))
		}
		if testing.Verbose() {
			t.Logf("%v slowest %v", r.counts, r.slowest)
		}
	})
	t.Logf("took %v", time.Since(real).Round(time.Millisecond))
}

// tail returns the end of a transcript.
func tail(text []byte, all bool) []byte {
	const most = 20_000
	if all || len(text) <= most {
		return text
	}
	return text[len(text)-most:]
}
