package transport

import "go.etcd.io/raft/v3/raftpb"

func (p *base) ours(self *Self, peer Identity, messages []*raftpb.Message) []*raftpb.Message {
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
