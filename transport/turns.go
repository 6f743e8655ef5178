package transport

import (
	"container/list"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxAddrs  = 1024
	addrsKept = 10 * time.Minute
)

var (
	errNoTurn = errors.New("transport: too many handshakes in progress")
	errPaced  = errors.New("transport: the host of the connection opens too many")
)

// turns limits how many handshakes of accepted connections are computed at a time. The package
// comment describes their order. After a handshake has read bytes of the peer, it holds a turn
// until it reads or writes again. In each line, handshakes that have already had a turn come
// first. The type turns is safe for concurrent use.
type turns struct {
	atOnce int           // simultaneous turns
	limit  time.Duration // time limit of a handshake, counted from Accept
	hosts  *hosts

	mu     sync.Mutex // guards all below
	busy   int
	lines  [6]list.List    // each element is a chan struct{}, closed to give a turn
	voters map[string]bool // preferred hosts
	known  addrs
}

// turn is the state of one handshake. Only the goroutine of the handshake uses it, except for busy.
type turn struct {
	of    *turns
	addr  string          // the peer's address without its port
	gone  <-chan struct{} // closed with the connection
	by    time.Time
	due   time.Time // when the rate of the host allows the handshake; zero means now
	begun bool
	stood bool // it has waited for a turn
	held  bool

	busy atomic.Bool // the handshake holds a turn or waits for one, and does not wait for the peer
}

func (t *turns) begin(from net.Addr, gone <-chan struct{}) *turn {
	return &turn{of: t, gone: gone, addr: hostOf(from), by: time.Now().Add(t.limit)}
}

// arrive returns the turn of a new connection, or errPaced if its host opens too many. The channel
// is closed with the connection.
func (t *turns) arrive(from net.Addr, gone <-chan struct{}) (*turn, error) {
	turn := t.begin(from, gone)
	if t.preferred(turn.addr) {
		return turn, nil
	}
	now := time.Now()
	wait, ok := t.hosts.arrive(turn.addr, now)
	if !ok {
		return nil, errPaced
	}
	if wait > 0 {
		turn.due = now.Add(wait)
	}
	return turn, nil
}

// charge counts n more connections of the host. So a host waits longer after a refusal.
func (t *turn) charge(n int) {
	if !t.of.preferred(t.addr) {
		t.of.hosts.charge(t.addr, time.Now(), n)
	}
}

// pause waits until the rate of the host allows the handshake. It holds no turn, so the connection
// can be displaced meanwhile.
func (t *turn) pause() error {
	if t.due.IsZero() {
		return nil
	}
	timer := time.NewTimer(time.Until(t.due))
	defer timer.Stop()
	t.due = time.Time{}
	select {
	case <-timer.C:
		return nil
	case <-t.gone:
		return errPaced
	}
}

func (t *turn) outOfTime(err error) bool {
	return t != nil && t.stood && (errors.Is(err, errNoTurn) || errors.Is(err, os.ErrDeadlineExceeded))
}

func (t *turn) take() error {
	o := t.of
	if t.held {
		return nil
	}
	if err := t.pause(); err != nil {
		return err
	}
	t.busy.Store(true)
	o.mu.Lock()
	if o.busy < o.atOnce {
		o.busy++
		t.held, t.begun = true, true
		o.mu.Unlock()
		return nil
	}
	t.stood = true
	line := &o.lines[t.line(time.Now())]
	ready := make(chan struct{})
	place := line.PushBack(ready)
	o.mu.Unlock()
	timer := time.NewTimer(time.Until(t.by))
	defer timer.Stop()
	select {
	case <-ready:
		t.held, t.begun = true, true
		return nil
	case <-t.gone:
	case <-timer.C:
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if isClosed(ready) { // the turn was given just when the timer fired
		o.pass()
		return errNoTurn
	}
	line.Remove(place)
	return errNoTurn
}

func (t *turn) line(now time.Time) int {
	n := 0
	switch {
	case t.of.voters[t.addr]:
	case t.of.known.has(t.addr, now):
		n = 2
	default:
		n = 4
	}
	if !t.begun {
		n++
	}
	return n
}

// give lets other handshakes have the turn. It is called before each read or write of the
// handshake, because these may block.
func (t *turn) give() {
	t.end()
}

func (t *turn) end() {
	if !t.held {
		return
	}
	t.held = false
	t.busy.Store(false)
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	t.of.pass()
}

// pass gives the turn to the next waiting handshake. The caller holds mu.
func (t *turns) pass() {
	for i := range t.lines {
		if first := t.lines[i].Front(); first != nil {
			close(t.lines[i].Remove(first).(chan struct{}))
			return
		}
	}
	t.busy--
}

func (t *turns) preferred(addr string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.voters[addr]
}

func (t *turns) proved(addr string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.add(addr, time.Now())
}

func (t *turns) prefer(addrs []string) {
	hosts := make(map[string]bool, len(addrs))
	for _, addr := range addrs {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			hosts[host] = true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.voters = hosts
}

type addrs struct {
	at    map[string]*list.Element
	order list.List // each element is a seenAt, the oldest first
}

type seenAt struct {
	addr string
	at   time.Time
}

func (a *addrs) has(addr string, now time.Time) bool {
	e := a.at[addr]
	return e != nil && now.Sub(e.Value.(seenAt).at) < addrsKept
}

func (a *addrs) add(addr string, now time.Time) {
	if a.at == nil {
		a.at = map[string]*list.Element{}
	}
	if e := a.at[addr]; e != nil {
		a.order.Remove(e)
	} else if len(a.at) >= maxAddrs {
		delete(a.at, a.order.Remove(a.order.Front()).(seenAt).addr)
	}
	a.at[addr] = a.order.PushBack(seenAt{addr, now})
}
