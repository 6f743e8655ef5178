package transport

import "time"

const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = time.Second
	pauseKept  = 10 * time.Second // how long a failure is remembered after its pause
	youngLink  = time.Second      // a link that ends sooner counts as a failed dial for the pause
)

// pause is the back-off after a failed dial.
type pause struct {
	addr  string
	delay time.Duration
	until time.Time
	timer *time.Timer // forgets it
}

// punish begins or doubles the pause before the next dial. The caller holds mu.
func (p *Port) punish(l *link, addr string) {
	if p.shut {
		return
	}
	b := &pause{addr: addr, delay: pauseFirst}
	if old := p.backoff[l.instance]; old != nil {
		old.timer.Stop()
		b.delay = min(2*old.delay, pauseMost)
	}
	b.until = time.Now().Add(b.delay)
	b.timer = time.AfterFunc(b.delay+pauseKept, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.backoff[l.instance] == b {
			delete(p.backoff, l.instance)
		}
	})
	p.backoff[l.instance] = b
}

// forgive ends the back-off for one instance. The caller holds mu.
func (p *Port) forgive(instance Instance) {
	if b := p.backoff[instance]; b != nil {
		b.timer.Stop()
		delete(p.backoff, instance)
	}
}
