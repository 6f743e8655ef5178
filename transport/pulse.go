package transport

import (
	"fmt"
	"sync"
	"time"
)

// A link at rest says every few seconds that it is still there, and one on which nothing is heard
// for long is ended: whoever lost his power or his network says nothing more, and TCP would take a
// quarter of an hour to notice, or for ever if nothing is sent.
const (
	pulseEvery  = 5 * time.Second
	pulseMissed = 4 // in a row: silence of 20 to 25 s
)

// pulse is the timer of a link that is up.
type pulse struct {
	link   *link
	stream *stream

	mu     sync.Mutex // guards all below
	timer  *time.Timer
	missed int
	over   bool
}

// startPulse watches over a stream until stop is called.
func startPulse(l *link, s *stream) *pulse {
	p := &pulse{link: l, stream: s}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(pulseEvery, p.beat)
	return p
}

func (p *pulse) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	heard := p.stream.heard.Swap(false)
	listens := p.stream.waits.Load() // silence counts only while it listens
	if p.missed++; heard || !listens {
		p.missed = 0
	}
	if p.missed == pulseMissed {
		p.link.blame(fmt.Errorf("%w: not a word for %v", ErrSilent, pulseMissed*pulseEvery))
		p.stream.kill()
		return
	}
	if !p.stream.said.Swap(false) {
		p.link.idle.Store(true)
		p.link.queue.notify()
	}
	p.timer.Reset(pulseEvery)
}
