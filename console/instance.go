package console

import (
	"cmp"
	"runtime/debug"

	"github.com/mortise-lock/mortise"
)

// instance describes the instance that answers.
type instance struct {
	Name     string        `json:"name"`
	ID       string        `json:"id"`
	Address  string        `json:"address"`
	Zone     string        `json:"zone,omitempty"`
	Role     string        `json:"role"`              // "leader", "voter" or "member"
	Version  string        `json:"version"`           // of mortise
	Program  string        `json:"program,omitempty"` // main module and its version, if the build states them
	Up       float64       `json:"up_seconds"`        // since the start of the node
	Joined   bool          `json:"joined"`            // it belongs to a group that is founded
	Attached bool          `json:"attached"`          // its session is attached to the leader
	Lease    mortise.State `json:"lease"`
	Left     float64       `json:"lease_seconds"`
	Held     int           `json:"held"`
	Idle     []idleHold    `json:"idle,omitempty"` // as mortise.Status.Idle
	Waiters  int           `json:"waiters"`
	Waiting  string        `json:"waiting_for,omitempty"`
	Err      string        `json:"error,omitempty"`
}

func instanceOf(s mortise.Status, program string) instance {
	i := instance{
		Name: s.Name, ID: s.Instance, Address: s.Address, Zone: s.Zone, Role: roleOf(s), Version: s.Version, Program: program,
		Up: inSeconds(s.Age), Joined: s.Joined, Attached: s.Attached, Lease: s.Lease, Left: inSeconds(s.LeaseFor),
		Held: s.Held, Idle: idleOf(s), Waiters: s.Waiters, Waiting: s.Waiting,
	}
	if s.Err != nil {
		i.Err = s.Err.Error()
	}
	return i
}

// IdleOf returns the lock with a token, or nil.
func (i instance) IdleOf(token mortise.Token) *idleHold {
	for _, h := range i.Idle {
		if h.Token == token {
			return &h
		}
	}
	return nil
}

func roleOf(s mortise.Status) string {
	switch {
	case s.Leading:
		return "leader"
	case s.Votes:
		return "voter"
	}
	return "member"
}

// program returns the path and the version of the program's main module. It returns "" for a build
// without a version, and for the command of mortise itself.
func program() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	return programOf(info)
}

func programOf(info *debug.BuildInfo) string {
	if v := info.Main.Version; v == "" || v == "(devel)" || info.Main.Path == "" {
		return ""
	}
	return info.Main.Path + " " + info.Main.Version
}

// defaultCluster is the value of Config.Cluster if it is not set.
const defaultCluster = "mortise"

func clusterOf(s mortise.Status) string { return cmp.Or(s.Cluster, defaultCluster) }
