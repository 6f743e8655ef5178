package whole

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"
)

// reseed makes the process a function of a seed. It is nil without the changed runtime.
var reseed func(seed uint64, yields *[3]uint32, refusals *[6]uint32)

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
	cryptotest.SetGlobalRandom(t, seed)
	real := time.Now()
	synctest.Test(t, func(t *testing.T) {
		if reseed != nil {
			reseed(seed, &p.yields, &p.refusals)
			defer reseed(0, &p.yields, &p.refusals)
		}
		r := newRun(p, dir, &out, verbose)
		if file := os.Getenv("MORTISE_TRANSCRIPT"); file != "" {
			f, err := os.Create(file)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r.out, r.verbose = f, true
		}
		bugs := r.play()
		t.Logf("seed %d hash %016x virtual %v lines %d", seed, r.hash, time.Since(r.began).Round(time.Millisecond), r.lines)
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
