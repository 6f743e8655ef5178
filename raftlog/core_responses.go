package raftlog

import "go.etcd.io/raft/v3/raftpb"

// responses are messages of raft that depend on work of this replica.
type responses struct {
	due  []*raftpb.Message // to be delivered by the next Turn
	held []*raftpb.Message // due when the present Output is carried out
}

func (r *responses) add(messages []*raftpb.Message) { r.due = append(r.due, messages...) }

func (r *responses) hold(messages []*raftpb.Message) { r.held = append(r.held, messages...) }

// release is called at the end of a Turn, because the next Turn follows when the Output is carried
// out.
func (r *responses) release() {
	r.due = append(r.due, r.held...)
	clear(r.held)
	r.held = r.held[:0]
}

// begin returns the responses to deliver. After their delivery the caller must pass them to end,
// which keeps those that were added meanwhile.
func (r *responses) begin() []*raftpb.Message {
	due := r.due
	r.due = nil
	return due
}

func (r *responses) end(due []*raftpb.Message) {
	clear(due)
	r.due = append(due[:0], r.due...)
}
