package queries

import (
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

const (
	adminTime   = 3 * time.Second  // time limit for an Admin answer that needs a leader
	clusterTime = 30 * time.Second // time limit for a Cluster answer; package cluster has separate limits
)

// Time returns the time limit of one attempt to answer a question of the service Query. Even
// without an event, a watch is answered before the limit, because a connection is closed if an
// answer is late.
func Time(q any) time.Duration {
	if _, ok := q.(*query.WatchRequest); ok {
		return replica.WatchTime + replica.QuestionTime
	}
	return replica.QuestionTime
}

func within(method string, q any) time.Duration {
	switch {
	case is(method, &query.Query_ServiceDesc):
		return Time(q)
	case is(method, &query.Admin_ServiceDesc):
		return adminTime + Time(q) - replica.QuestionTime
	}
	return clusterTime
}
