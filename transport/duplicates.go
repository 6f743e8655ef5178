package transport

import (
	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	maxDuplicates     = 64       // raft messages in one parcel
	maxDuplicateBytes = 32 << 10 // bytes of raft messages that wait for one address, or are in one parcel
)

// SendDuplicates sends copies of raft messages on another connection than the link. The caller
// passes the same messages to Send. The copies may be lost. The peer receives them in a separate
// Frame. SendDuplicates copies the bytes and does not block.
func (p *Port) SendDuplicates(to nodeid.Endpoint, messages []*raftpb.Message) {
	if to.Addr == "" || p.self.Load().Group == 0 || isClosed(p.closing) {
		return
	}
	packed := make([][]byte, 0, len(messages))
	for _, m := range messages {
		if b, err := appendMessage(nil, m); err == nil {
			packed = append(packed, b)
		}
	}
	if len(packed) > 0 {
		p.gossip.enqueueRaft(to.Addr, packed)
	}
}

func (g *Gossip) enqueueRaft(addr string, packed [][]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.outbox(addr)
	for _, b := range packed {
		if s == nil || len(s.raft) == maxDuplicates || s.raftBytes+len(b) > maxDuplicateBytes {
			g.port.counts.raftDropped.Add(1)
			continue
		}
		s.raft = append(s.raft, b)
		s.raftBytes += len(b)
		s.notify()
	}
}

// duplicates passes the raft messages of a parcel to the handler. It drops messages from an
// instance without a link. Otherwise this node could follow a leader again after the leader's Down.
func (p *table) duplicates(peer Identity, packed [][]byte) *wire.Refusal {
	if len(packed) == 0 {
		return nil
	}
	size := 0
	for _, b := range packed {
		size += len(b)
	}
	if len(packed) > maxDuplicates || size > maxDuplicateBytes {
		return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "too many raft messages"}
	}
	messages, err := unpack(packed)
	if err != nil {
		return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "a raft message that cannot be decoded"}
	}
	self := p.self.Load()
	if self.Group == 0 || self.Group != peer.Group || !p.linked(peer.Instance) {
		p.counts.raftForeign.Add(uint64(len(messages)))
		return nil
	}
	if mine := p.ours(self, peer, messages); len(mine) > 0 {
		p.config.Handler.Frame(peer, Frame{Raft: mine, Duplicate: true})
	}
	return nil
}
