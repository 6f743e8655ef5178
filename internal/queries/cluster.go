package queries

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// These are the limits of an answer about the voters.
const (
	maxListed    = 64 // entries of a list
	maxTextBytes = 1024
	maxNameBytes = 128
	maxAddrBytes = 200
	maxNumber    = 1 << 30
	maxKind      = 255
)

var (
	errSilence = errors.New("mortise: this instance is stopping or takes no part in a group, so it does not " +
		"answer this query")
	errBounds = errors.New("mortise: the answer about the voters is malformed: a list or a text in it is too long")
)

// DiskServer answers the questions of other instances about disks.
type DiskServer interface {
	ReportDisk(ctx context.Context, r *query.DiskReport) (*query.DiskVerdict, error)
	Disks(ctx context.Context, q *query.DisksRequest) (*query.DisksAnswer, error)
}

// Cluster returns the service for questions of other instances about the group. Its first argument
// returns the cluster of this instance, and is called only after the [Guard] has reported that the
// instance has started.
func Cluster(of func() *cluster.Cluster, disks DiskServer) transport.Service {
	return transport.Service{Desc: &query.Cluster_ServiceDesc, Impl: group{DiskServer: disks, of: of}}
}

type group struct {
	query.UnsafeClusterServer
	DiskServer
	of func() *cluster.Cluster
}

var _ query.ClusterServer = group{}

// Found passes a question to package founding. A question from a node with a member's secret
// changes nothing.
func (g group) Found(ctx context.Context, q *query.FoundRequest) (*query.FoundAnswer, error) {
	from := transport.AskerOf(ctx)
	if from.Peer.Tier == capability.Member {
		return &query.FoundAnswer{Answer: g.of().Tell(from.Instance, q.Question)}, nil
	}
	return &query.FoundAnswer{Answer: g.of().Answer(cluster.Asker{Instance: from.Instance, Addr: from.Addr},
		q.Question)}, nil
}

func (g group) VoterStatus(ctx context.Context, q *query.VoterStatusRequest) (*query.VoterStatusAnswer, error) {
	a, ok := g.of().ReplyStatus(cluster.StatusQuery{Group: q.Group, Instance: transport.AskerOf(ctx).Instance,
		Raft: q.Raft, At: q.At})
	if !ok {
		return nil, errSilence
	}
	if a.VoterStatus == nil {
		return &query.VoterStatusAnswer{Leader: a.Leader[:], Addr: a.Addr}, nil
	}
	return &query.VoterStatusAnswer{Leader: a.VoterStatus.Leader[:], Status: voterStatusOf(a.VoterStatus)}, nil
}

func (g group) Probe(context.Context, *query.ProbeRequest) (*query.ProbeAnswer, error) {
	if !g.of().Present() {
		return nil, errSilence
	}
	return &query.ProbeAnswer{}, nil
}

// Found sends a question of package founding to another instance. It returns the answer and the
// instance that has answered.
func Found(ctx context.Context, at *transport.Remote, question []byte) ([]byte, nodeid.ID, error) {
	a, err := Ask(ctx, query.NewClusterClient(at), query.ClusterClient.Found, &query.FoundRequest{Question: question})
	return a.GetAnswer(), at.Answered.Instance, err
}

// QueryStatus asks an instance for the status of the voters.
func QueryStatus(ctx context.Context, at *transport.Remote, q cluster.StatusQuery) (cluster.StatusReply, error) {
	a, err := Ask(ctx, query.NewClusterClient(at), query.ClusterClient.VoterStatus,
		&query.VoterStatusRequest{Group: q.Group, Raft: q.Raft, At: q.At})
	if err != nil {
		return cluster.StatusReply{}, err
	}
	return statusReply(a)
}

// Probe returns nil if the instance answers.
func Probe(ctx context.Context, at *transport.Remote) error {
	_, err := Ask(ctx, query.NewClusterClient(at), query.ClusterClient.Probe, &query.ProbeRequest{})
	return err
}

// voterStatusOf returns the message for a VoterStatus. The message contains only the kind and
// the reason of the next step. Long lists and texts are shortened.
func voterStatusOf(c *cluster.VoterStatus) *query.VoterStatus {
	r := &c.Report
	m := &query.VoterStatus{
		MayStop: c.MayStop, AllLeaving: c.AllLeaving, Due: c.Due, Known: c.Known, Quorum: r.Quorum,
		Renewing: r.Renewing, AwaitsReturn: r.AwaitsReturn,
		Eligible: uint32(max(r.Eligible, 0)), Target: uint32(max(r.Target, 0)),
		CannotSurvive: r.CannotSurvive[:min(len(r.CannotSurvive), maxListed)],
		Next:          uint32(r.Next.Kind), Why: plain.Cut(r.Next.Why, maxTextBytes),
	}
	for _, each := range r.Missing[:min(len(r.Missing), maxListed)] {
		m.Missing = append(m.Missing, &query.Missing{
			Raft: each.ID, Instance: each.Instance[:], Name: plain.Cut(each.Name, maxNameBytes),
			SilentFor: int64(max(each.SilentFor, 0)), Heard: each.Heard,
		})
	}
	if s := r.Surplus; s != nil {
		m.Surplus = &query.Surplus{Running: uint32(s.Running), Replicas: uint32(s.Replicas), For: int64(s.For)}
		for _, name := range s.Names[:min(len(s.Names), maxListed)] {
			m.Surplus.Names = append(m.Surplus.Names, plain.Cut(name, maxNameBytes))
		}
	}
	for _, text := range c.Remarks[:min(len(c.Remarks), maxListed)] {
		m.Remarks = append(m.Remarks, plain.Cut(text, maxTextBytes))
	}
	return m
}

func statusReply(a *query.VoterStatusAnswer) (cluster.StatusReply, error) {
	leader, ok := instance(a.Leader)
	m := a.Status
	if !ok || len(a.Addr) > maxAddrBytes || !bounded(m) {
		return cluster.StatusReply{}, errBounds
	}
	if m == nil {
		return cluster.StatusReply{Leader: leader, Addr: a.Addr}, nil
	}
	c := &cluster.VoterStatus{MayStop: m.MayStop, AllLeaving: m.AllLeaving, Due: m.Due, Known: m.Known, Leader: leader,
		Remarks: m.Remarks}
	c.Report = voters.Report{
		Quorum: m.Quorum, Due: m.Due, Renewing: m.Renewing, AwaitsReturn: m.AwaitsReturn, Eligible: int(m.Eligible),
		Target: int(m.Target), CannotSurvive: m.CannotSurvive,
		Next: voters.Step{Kind: voters.Kind(m.Next), Why: m.Why}, // a later version may have other kinds
	}
	for _, each := range m.Missing {
		is, ok := instance(each.Instance)
		if !ok || each.SilentFor < 0 || len(each.Name) > maxNameBytes {
			return cluster.StatusReply{}, errBounds
		}
		c.Report.Missing = append(c.Report.Missing, voters.Missing{
			ID: each.Raft, Instance: is, Name: each.Name, SilentFor: time.Duration(each.SilentFor),
			Heard: each.Heard,
		})
	}
	if s := m.Surplus; s != nil {
		c.Report.Surplus = &voters.Surplus{Running: int(s.Running), Replicas: int(s.Replicas), Names: s.Names,
			For: time.Duration(s.For)}
	}
	return cluster.StatusReply{VoterStatus: c}, nil
}

func bounded(m *query.VoterStatus) bool {
	if m == nil {
		return true
	}
	ok := len(m.Missing) <= maxListed && len(m.CannotSurvive) <= maxListed && len(m.Remarks) <= maxListed &&
		m.Eligible <= maxNumber && m.Target <= maxNumber && m.Next <= maxKind && len(m.Why) <= maxTextBytes
	if s := m.Surplus; s != nil {
		ok = ok && s.Running <= maxNumber && s.Replicas <= maxNumber && s.For >= 0 && len(s.Names) <= maxListed
		for _, name := range s.Names {
			ok = ok && len(name) <= maxNameBytes
		}
	}
	for _, text := range m.Remarks {
		ok = ok && len(text) <= maxTextBytes
	}
	return ok
}

// instance decodes an instance ID. An empty slice means zero.
func instance(b []byte) (nodeid.ID, bool) { return ID(b), len(b) == 0 || len(b) == nodeid.Size }
