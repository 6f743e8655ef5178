package transport

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// deliver checks a frame and passes it to the handler. A refusal ends the link.
func (l *link) deliver(f *received) *wire.Refusal {
	p := l.port
	if f.refusal != nil {
		l.recordError(refused(l.peer.Addr, f.refusal))
		return nil // the peer ends the stream after a refusal
	}
	if l.mute.Load() {
		return nil
	}
	if f.standing != nil {
		if r := l.learn(f.standing); r != nil {
			return r
		}
	}
	messages := f.raft
	if f.malformed {
		return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "a raft message that cannot be decoded"}
	}
	self := p.self.Load()
	if self.Instance() != l.self {
		return nil
	}
	words := len(f.words[0])+len(f.words[1])+len(f.words[2]) > 0
	if self.Group == 0 || self.Group != l.peer.Group {
		if !words && len(messages) == 0 && !f.retired {
			return nil
		}
		p.counts.framesForeign.Add(1)
		text := fmt.Sprintf("this node is in group %x, the peer in %x", self.Group, l.peer.Group)
		if self.Group == 0 || l.peer.Group == 0 { // one side has just started, or will restart in place
			p.config.Logger.Debug("transport: dropped a frame that came before both sides had a group",
				"addr", l.peer.Addr, "instance", l.instance, "why", text)
		} else {
			p.notices.warn("transport: dropped a frame from another group", "addr", l.peer.Addr, "instance", l.instance,
				"why", text)
		}
		if words {
			return &wire.Refusal{Reason: wire.Refusal_GROUP, Text: text}
		}
		return nil
	}
	out := Frame{Renewals: f.words[0], Commands: f.words[1], Replies: f.words[2], Retired: f.retired}
	out.Raft = p.ours(self, l.peer, messages)
	if !l.peer.serves() {
		out.Raft, out.Replies, out.Retired = nil, nil, false
	}
	if !out.empty() {
		p.config.Handler.Frame(l.peer, out)
	}
	return nil
}

func (p *Port) ours(self *Self, peer Identity, messages []*raftpb.Message) []*raftpb.Message {
	ours := messages[:0]
	for _, m := range messages {
		if owns(self, peer, m) {
			ours = append(ours, m)
			continue
		}
		p.counts.raftForeign.Add(1)
		// After a change of voters, messages in flight may have another sender or receiver.
		p.config.Logger.Debug("transport: dropped a raft message with another sender or receiver than the stream's",
			"addr", peer.Addr, "from", m.GetFrom(), "stream_from", peer.Raft, "to", m.GetTo(), "stream_to", self.Raft)
	}
	return ours
}

func owns(self *Self, peer Identity, m *raftpb.Message) bool {
	return peer.Raft != 0 && m.GetFrom() == peer.Raft && self.Raft != 0 && m.GetTo() == self.Raft
}

func (l *link) learn(s *wire.Standing) *wire.Refusal {
	if len(s.Addr) > maxAddr {
		return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "an address that is too long"}
	}
	l.peer.Group, l.peer.Raft, l.peer.Addr = s.Group, s.Raft, s.Addr
	l.peer.confine()
	return nil
}
