package cluster

import (
	"slices"
	"time"
)

const (
	rejoinEvery = 5 * time.Second // time between two rounds, plus a random time of up to 5 s
	rejoinPause = 5 * time.Second // shortest time between two attempts at an address that has answered
	rejoinMany  = 4               // highest number of attempts at a time
	maxAddrs    = 256             // highest number of remembered addresses of former members
)

// finder chooses the addresses with which this instance tries to gossip, among those that gossip
// does not report. memberlist forgets a member half a minute after declaring it dead, so after a
// longer partition the two sides would never reconnect. The finder keeps trying former members, a
// few at a time. If Founders is set, it also tries the known founders. If Replicas is set, it also
// tries the voters and the addresses in Join.
type finder struct {
	self  string
	next  time.Duration
	turn  uint64
	known []string                 // addresses of former members, oldest first
	tried map[string]time.Duration // last attempts; iterated only to drop old ones
	now   []string                 // addresses that have just answered a question
	busy  map[string]bool          // attempts under way
}

func newFinder(self string) finder {
	return finder{self: self, tried: make(map[string]time.Duration), busy: make(map[string]bool)}
}

// met records that an instance has just answered at the address.
func (f *finder) met(addr string, now time.Duration) {
	if last, tried := f.tried[addr]; (!tried || now-last > rejoinPause) && !slices.Contains(f.now, addr) {
		f.now = append(f.now, addr)
	}
}

func (f *finder) remember(addr string) {
	if addr == "" || addr == f.self || slices.Contains(f.known, addr) {
		return
	}
	if len(f.known) >= maxAddrs {
		f.known = slices.Delete(f.known, 0, 1)
	}
	f.known = append(f.known, addr)
}

// due returns the addresses to gossip with now. It begins with addresses that have just answered a
// question. In every round it adds some of the wanted and known addresses, and the next round
// continues with others. It omits the addresses that gossip already reports.
func (f *finder) due(now time.Duration, wanted, here []string, random uint64) []string {
	var out []string
	full := func() bool { return len(f.busy) >= rejoinMany }
	pick := func(addr string) bool {
		if full() || addr == "" || addr == f.self || f.busy[addr] || slices.Contains(here, addr) ||
			slices.Contains(out, addr) {
			return false
		}
		out = append(out, addr)
		f.busy[addr], f.tried[addr] = true, now
		return true
	}
	for len(f.now) > 0 && !full() { // an instance that has just answered can report other addresses
		pick(f.now[0])
		f.now = f.now[1:]
	}
	if f.next > now {
		return out
	}
	f.next = now + rejoinEvery + time.Duration(random%uint64(rejoinEvery))
	for addr, last := range f.tried {
		if now-last > time.Hour {
			delete(f.tried, addr)
		}
	}
	all := slices.Concat(wanted, f.known)
	for n := 0; n < len(all) && len(f.busy) < rejoinMany; n++ {
		f.turn++
		pick(all[f.turn%uint64(len(all))])
	}
	return out
}

// ended records that an attempt has ended.
func (f *finder) ended(addr string) { delete(f.busy, addr) }
