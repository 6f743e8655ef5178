package lockfsm

// A walk over a few inside entries (see lock) is cheaper than an index. From indexFrom entries on,
// a lock has an index, so that no command visits all holders of a crowded lock. The lock loses the
// index when at most indexUntil are left. It is not replicated and never affects a result.
const (
	indexFrom  = 33
	indexUntil = 16

	// namedInside bounds the inside entries that a search for the holder to name visits.
	namedInside = 256
)

// insideIndex finds the inside entries of one lock.
type insideIndex struct {
	granted map[Token]*entry
	stays   map[Token]*entry    // by token / StayTokens, which is different for each stay
	untold  map[*entry]struct{} // the granted entries that await a notice
	totals  totals
}

// add adds an entry that is granted. It does nothing for any other entry.
func (x *insideIndex) add(e *entry) {
	if x == nil || e.token == 0 {
		return
	}
	x.granted[e.token] = e
	if e.stays() {
		x.stays[e.token/StayTokens] = e
	}
	if e.awaitsNotice() {
		x.untold[e] = struct{}{}
	}
}

// drop must be called before the token or the stay of e changes.
func (x *insideIndex) drop(e *entry) {
	if x == nil || e.token == 0 {
		return
	}
	delete(x.granted, e.token)
	delete(x.untold, e)
	if e.stays() {
		delete(x.stays, e.token/StayTokens)
	}
}

func (x *insideIndex) told(e *entry) {
	if x != nil {
		delete(x.untold, e)
	}
}

// totals counts the entries that name each total. It is a min-heap, with the place of each total.
type totals struct {
	heap   []total
	places map[uint32]int
}

type total struct{ of, entries uint32 }

func (t *totals) add(of uint32) {
	at, known := t.places[of]
	if !known {
		at = len(t.heap)
		t.heap = append(t.heap, total{of: of})
		t.up(at)
		at = t.places[of]
	}
	t.heap[at].entries++
}

func (t *totals) remove(of uint32) {
	at := t.places[of]
	if t.heap[at].entries--; t.heap[at].entries > 0 {
		return
	}
	delete(t.places, of)
	end := len(t.heap) - 1
	moved := t.heap[end]
	t.heap = t.heap[:end]
	if at < end {
		t.set(at, moved)
		t.down(at)
		t.up(t.places[moved.of])
	}
}

func (t *totals) set(at int, one total) { t.heap[at], t.places[one.of] = one, at }

func (t *totals) up(at int) {
	one := t.heap[at]
	for at > 0 && one.of < t.heap[(at-1)/2].of {
		t.set(at, t.heap[(at-1)/2])
		at = (at - 1) / 2
	}
	t.set(at, one)
}

func (t *totals) down(at int) {
	one := t.heap[at]
	for below := 2*at + 1; below < len(t.heap); below = 2*at + 1 {
		if below+1 < len(t.heap) && t.heap[below+1].of < t.heap[below].of {
			below++
		}
		if one.of <= t.heap[below].of {
			break
		}
		t.set(at, t.heap[below])
		at = below
	}
	t.set(at, one)
}
