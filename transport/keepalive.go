package transport

import (
	"fmt"
	"sync"
	"time"
)

// If the peer loses its power or network, TCP detects this only after a quarter of an hour, and
// never on an idle connection. So an idle link sends keepalives.
const (
	keepaliveEvery      = 5 * time.Second
	maxSilentKeepalives = 4 // a link ends after 20 to 25 s of silence
)

type keepaliveTimer struct {
	link   *link
	stream *stream

	mu     sync.Mutex // guards all below
	timer  *time.Timer
	missed int
	over   bool
}

// startKeepalive starts the keepalive of a stream. The caller must call stop.
func startKeepalive(l *link, s *stream) *keepaliveTimer {
	p := &keepaliveTimer{link: l, stream: s}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(keepaliveEvery, p.beat)
	return p
}

func (p *keepaliveTimer) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
}

func (p *keepaliveTimer) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	heard := p.stream.heard.Swap(false)
	listens := p.stream.waits.Load() // silence does not count while the reader is busy
	if p.missed++; heard || !listens {
		p.missed = 0
	}
	if p.missed == maxSilentKeepalives {
		p.link.recordError(fmt.Errorf("%w: nothing received for %v", ErrSilent, maxSilentKeepalives*keepaliveEvery))
		p.stream.kill()
		return
	}
	if !p.stream.said.Swap(false) {
		p.link.idle.Store(true)
		p.link.queue.notify()
	}
	p.timer.Reset(keepaliveEvery)
}
