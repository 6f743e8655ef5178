package transport

// Counts reports what a port holds and has done, for status output and leak tests.
type Counts struct {
	Links      int
	Dialing    int
	Ending     int // ended links whose call of Down has not returned
	BackingOff int // remembered failures of dials to an address, or to one instance there
	Shared     int // connections for questions and gossip
	Packeters  int // addresses to which packets are being sent
	Streams    int // byte streams of gossip in either direction
	Accepted   int // connections that peers have opened
	Strangers  int // accepted connections without a verified hello

	FramesSent uint64
	// raft messages and duplicates dropped because they were too large or the queue was full
	RaftDropped uint64
	// dropped raft messages with a wrong sender or receiver, and duplicates from peers without a
	// link
	RaftForeign    uint64
	FramesForeign  uint64 // frames from peers in another group or in none
	PacketsDropped uint64 // in either direction
}

// Counts returns the current counts. It is safe for concurrent use and may be called after Close.
func (p *Port) Counts() Counts {
	packeters, streams := p.gossip.count()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := Counts{
		Packeters: packeters, Streams: streams,
		Ending: len(p.dying), BackingOff: p.dials.remembered(), Shared: len(p.shared),
		FramesSent:  p.counts.framesSent.Load(),
		RaftDropped: p.counts.raftDropped.Load(), RaftForeign: p.counts.raftForeign.Load(),
		FramesForeign: p.counts.framesForeign.Load(), PacketsDropped: p.counts.packetsDropped.Load(),
	}
	c.Accepted, c.Strangers = p.listener.count()
	for _, l := range p.links {
		if l.state == up {
			c.Links++
		} else {
			c.Dialing++
		}
	}
	return c
}
