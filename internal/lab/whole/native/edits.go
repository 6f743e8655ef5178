package native

// edits are the changes of Go's standard library, except those of package sync/atomic.
var edits = [...]edit{
	{"runtime/proc.go", "const haveSysmon = GOARCH != \"wasm\"\n", "const haveSysmon = false\n"},
	{"runtime/proc.go", "const forcePreemptNS = 10 * 1000 * 1000 // 10ms\n", "const forcePreemptNS = 1 << 60\n"},
	{"runtime/proc.go", `	next := pp.runnext
	// If the runnext is non-0 and the CAS fails,`, `	next := pp.runnext
	if whole.on && next != 0 && pp.runqhead != pp.runqtail && wholeNext(&whole.order)%4 == 0 {
		next = 0 // another one goes first
	}
	// If the runnext is non-0 and the CAS fails,`},
	{"runtime/proc.go", `		if t == h {
			return nil, false
		}
		gp := pp.runq[h%uint32(len(pp.runq))].ptr()
`, `		if t == h {
			return nil, false
		}
		if n := t - h; n > 1 && whole.on {
			if i := uint32(wholeNext(&whole.order) % uint64(n)); i != 0 {
				first, other := &pp.runq[h%uint32(len(pp.runq))], &pp.runq[(h+i)%uint32(len(pp.runq))]
				*first, *other = *other, *first
			}
		}
		gp := pp.runq[h%uint32(len(pp.runq))].ptr()
`},
	// The collector is off, so a run touches each page of its heap for the first time.
	{"runtime/mem_linux.go", "	setVMAName(p, n, vmaName)\n\n	// Disable huge pages",
		"	setVMAName(p, n, vmaName)\n	sysHugePageOS(v, n)\n\n	// Disable huge pages"},
	{"runtime/rand.go", "	seed := &globalRand.seed\n	if len(startupRand)", `	for i := range startupRand {
		startupRand[i] = byte(i + 1)
	}
	seed := &globalRand.seed
	if len(startupRand)`},
	{"runtime/rand.go", "	mp := getg().m\n	c := &mp.chacha8\n", `	mp := getg().m
	if whole.on && mp.p != 0 && getg() == mp.curg {
		return wholeNext(&whole.state)
	}
	c := &mp.chacha8
`},
	{"runtime/rand.go", "	mp := getg().m\n	// Implement wyrand:", `	mp := getg().m
	if whole.on && mp.p != 0 && getg() == mp.curg {
		return uint32(wholeNext(&whole.cheap))
	}
	// Implement wyrand:`},
	{"runtime/rand.go", "// Too much legacy code has go:linkname references\n", state +
		"// Too much legacy code has go:linkname references\n"},
	{"runtime/chan.go", "	chansend(c, elem, true, sys.GetCallerPC())\n",
		"	wholeYield(&whole.chans)\n	chansend(c, elem, true, sys.GetCallerPC())\n"},
	{"runtime/chan.go", "	return chansend(c, elem, false, sys.GetCallerPC())\n",
		"	wholeYield(&whole.chans)\n	return chansend(c, elem, false, sys.GetCallerPC())\n"},
	{"runtime/chan.go", "func chanrecv1(c *hchan, elem unsafe.Pointer) {\n",
		"func chanrecv1(c *hchan, elem unsafe.Pointer) {\n	wholeYield(&whole.chans)\n"},
	{"runtime/chan.go", "func chanrecv2(c *hchan, elem unsafe.Pointer) (received bool) {\n",
		"func chanrecv2(c *hchan, elem unsafe.Pointer) (received bool) {\n	wholeYield(&whole.chans)\n"},
	{"runtime/chan.go", "func selectnbrecv(elem unsafe.Pointer, c *hchan) (selected, received bool) {\n",
		"func selectnbrecv(elem unsafe.Pointer, c *hchan) (selected, received bool) {\n	wholeYield(&whole.chans)\n"},
	{"runtime/select.go", "block bool) (int, bool) {\n	gp := getg()\n",
		"block bool) (int, bool) {\n	wholeYield(&whole.chans)\n	gp := getg()\n"},
	{"internal/sync/mutex.go", `func (m *Mutex) Lock() {
	// Fast path: grab unlocked mutex.
`, `func (m *Mutex) Lock() {
	wholeYield()
	// Fast path: grab unlocked mutex.
`},
	// A mutex counts how long a goroutine has waited in real time.
	{"internal/sync/mutex.go", "	starvationThresholdNs = 1e6\n", "	starvationThresholdNs = 1 << 60\n"},
	{"internal/sync/runtime.go", "//go:linkname runtime_nanotime\n", `// wholeYield may let another goroutine run.
//
//go:linkname wholeYield
func wholeYield()

//go:linkname runtime_nanotime
`},
}

// state is what the runtime keeps. The rates are the chances of one in so many; zero means never.
const state = `// whole is the state of a process that runs as a function of one seed, with one P.
var whole struct {
	on                          bool
	state, cheap, order, faults uint64
	mutexes, chans, atomics     uint32
	refusals                    [8]uint32
	skips, counts               [8]uint32 // of wholeRefuseNext
	only                        *wholeChoice
	refused                     [1024]wholeRefusal
	times                       uint32 // how often a place has refused by its rate, or would have
}

// wholeRefusal is a refusal by a rate, at a time of the bubble. happened is 0 if only left it out.
type wholeRefusal struct {
	kind, happened int32
	at             int64
}

// wholeChoice has the refusals that happen: all of some kinds, and single ones by their number.
type wholeChoice struct {
	kinds [8]bool
	times [1024]bool
}

//go:nosplit
func wholeNext(s *uint64) uint64 {
	*s += 0x9e3779b97f4a7c15
	z := *s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

//go:linkname wholeSeed
func wholeSeed(seed uint64, yields *[3]uint32, refusals *[8]uint32) {
	whole.state, whole.cheap, whole.order, whole.faults = seed, seed^1<<60, seed^1<<61, seed^1<<62
	whole.mutexes, whole.chans, whole.atomics, whole.refusals = yields[0], yields[1], yields[2], *refusals
	whole.on = seed != 0
}

//go:linkname wholeRefuseNext
func wholeRefuseNext(kind int, skip, count uint32) {
	whole.refusals = [8]uint32{}
	whole.skips[kind], whole.counts[kind] = skip, count
}

//go:linkname wholeRefuse
func wholeRefuse(kind int) bool {
	if whole.counts[kind] > 0 && getg().bubble != nil {
		if whole.skips[kind] > 0 {
			whole.skips[kind]--
			return false
		}
		whole.counts[kind]--
		return true
	}
	rate, bubble := whole.refusals[kind], getg().bubble
	if !whole.on || rate == 0 || bubble == nil || uint32(wholeNext(&whole.faults)>>32)%rate != 0 {
		return false
	}
	n := whole.times
	whole.times++
	happens := whole.only == nil || whole.only.kinds[kind] || n < uint32(len(whole.only.times)) && whole.only.times[n]
	if n < uint32(len(whole.refused)) {
		whole.refused[n] = wholeRefusal{kind: int32(kind), at: bubble.now}
		if happens {
			whole.refused[n].happened = 1
		}
	}
	return happens
}

// wholeOnly lets only some refusals happen, or all.
//
//go:linkname wholeOnly
func wholeOnly(only *wholeChoice) { whole.only = only }

// wholeRefused returns the first refusals.
//
//go:linkname wholeRefused
func wholeRefused() []wholeRefusal {
	return whole.refused[:min(whole.times, uint32(len(whole.refused)))]
}

func wholeYield(rate *uint32) {
	if !whole.on || *rate == 0 {
		return
	}
	gp := getg()
	if gp == gp.m.curg && gp.m.locks == 0 && gp.bubble != nil && uint32(wholeNext(&whole.order)>>32)%*rate == 0 {
		Gosched()
	}
}

//go:linkname whole_mutex internal/sync.wholeYield
func whole_mutex() { wholeYield(&whole.mutexes) }

//go:linkname whole_atomic sync/atomic.wholeYield
func whole_atomic() { wholeYield(&whole.atomics) }

`

// edit changes one file of Go: the text `put` replaces `at`, which must occur exactly once.
type edit struct{ file, at, put string }
