package queries

import (
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

const (
	adminTime   = 3 * time.Second  // for an answer of Admin that needs a leader; the asker may wait less
	clusterTime = 30 * time.Second // for an answer of Cluster; package cluster has its own limits
)

// Time limits one attempt to have a question of Query answered. A watch without an event is
// answered before that, because a connection on which no answer comes in time is given up.
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
