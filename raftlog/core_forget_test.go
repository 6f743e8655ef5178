package raftlog

import "testing"

// Raft alone would report the dead leader forever.
func TestALearnerForgetsADeadLeader(t *testing.T) {
	c, l := lone(t)
	learner := c.join(2)
	c.change(l, add(2))
	if learner.role.Leader != l.id {
		t.Fatalf("the learner has the role %+v", learner.role)
	}
	c.isolate(l.id)
	c.pass(10)
	if learner.role.Leader != l.id {
		t.Errorf("the learner has forgotten its leader within an election timeout: %+v", learner.role)
	}
	c.pass(11)
	if learner.role.Leader != 0 {
		t.Errorf("after two election timeouts the learner still reports a dead leader: %+v", learner.role)
	}
	c.settle(2)
	if learner.role.Leader != l.id {
		t.Errorf("the leader sends again, and the learner has the role %+v", learner.role)
	}
}
