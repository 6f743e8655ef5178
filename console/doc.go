// Package console shows the state of a node to operators and to probes over HTTP. One handler
// serves a page, the same data as JSON, and the liveness and readiness probes of an orchestrator.
//
//	mux.Handle("/mortise/", http.StripPrefix("/mortise", console.New(node, console.Options{})))
//
// The handler can be mounted at any path, and serves these paths below it:
//
//	/             the page: what is wrong and the next step, the last hour of this instance (with
//	              Options.History), its build and its time since the start, the voters and a page
//	              of the members by zone (a later page with ?after=), the sessions that end first,
//	              the holders and waiters of keys, the last abnormal ends of holds, a search by
//	              prefix, holder and age (?prefix=, ?holder=, ?age=), one key with its whole queue
//	              (?key=), a picture of the waiting requests and their holders
//	/status.json  the same for programs, with the same parameters; tokens are strings, durations
//	              are seconds. It has the figures of the last hour, but not the points of the lines
//	/livez        200 unless [mortise.Node.Err] reports that the node has ended; only then a restart
//	              helps, so a lost quorum has no influence
//	/readyz       200 if [mortise.Node.Ready] returns nil within half a second; else 503 and a
//	              sentence that says what the node waits for
//
// Every path that accepts GET also accepts HEAD. The page can be read and searched without a
// script. With the script, the page shows a change within two seconds. The page loads nothing from
// another site, and the Content-Security-Policy forbids such loads.
//
// A filter by holder or age selects among the 1,000 oldest keys of the prefix, and knows the first
// three requests of each queue. The age is a duration such as 30s or 5m, or a number of seconds.
// Commands that the page offers to copy call the command mortise, which finds the cluster by its
// own variables or files. If the table of the members is short, the page leaves out elsewhere what
// the table shows.
//
// # Guarantees
//
//   - The handler only reads, with one exception: an operator can end a hold by force, if
//     [Options.MayForce] is set and allows the request. Such a request must be a POST, and is
//     rejected if it comes from a page of another origin.
//   - Every response is sent within a few seconds, whatever state the group is in. It is sent
//     within half a second if this instance has found that there is no leader. A probe is answered
//     within half a second. Without a leader the page shows the last data and its age.
//   - However many viewers and keys there are, one instance reads data from the leader for one
//     request at a time, and reads the same data again after a second at the earliest. One reading
//     takes about twenty calls, for at most 1,000 keys, 1,000 sessions and 100 members. The page
//     counts the items that it leaves out, or states that it leaves some out.
//   - The page and its JSON accept only requests whose Host header has an IP address, localhost or
//     one of [Options.Hosts]. The two probes answer every request, but give reasons only to
//     requests that the page accepts.
//   - No other page can embed a response in a frame.
//   - The memory of the last hour has a fixed size, and its hooks allocate nothing. See [History].
//   - Keys, values and names are shown as text, whatever they contain. Unprintable characters, such
//     as a mark that changes the direction of writing, are shown as numbers.
//
// # Concurrency
//
// The handler is safe for concurrent use. It starts no goroutine. A request that finds the data
// older than a second reads new data in its own goroutine, and concurrent requests wait for that
// data.
//
// # Failure
//
// If the page could not get some data, it shows an error in the place of that data. The page is
// sent with status 200 if it can be rendered. After Close of the node, the page reports that the
// node has ended.
//
// # Limits
//
// Every client that reaches the handler can read all keys, values, names and addresses. Put your
// own authentication in front of it. If an orchestrator needs the two probes without
// authentication, mount the handler a second time at their paths, as in the example. A search that
// matches few of very many keys reads keys, a thousand at a time, for at most a second, and then
// reports that there are more. Only the 1,000 oldest keys can appear in the lists of the keys that
// are held longest and of the keys with the most waiters.
//
// The times without a Beat ([mortise.Request.MaxIdle]) are those of the locks of this instance
// only.
//
// The last hour is that of this instance only, because no instance has the figures of all. It is
// forgotten when the process ends. Its lines have a point for each half minute. Its percentiles
// differ by at most an eighth from those of the durations.
//
// Two requests of one instance may belong to unrelated work. So the picture connects a hold and a
// waiting request of one instance only if the hold is older than [Options.Long], and a circle in
// the picture is only a suspected deadlock. The picture shows no circle of more than six keys. The
// circles that [mortise.DeadlockError] reports are not shown, because those requests no longer
// wait.
//
// # Refused alternatives
//
// A liveness probe that queries the group: during a network partition, the orchestrator would
// restart every instance, and the group would be lost. Pushing data to viewers and refreshing data
// in the background: both cost work while there is no viewer. Listing all keys: reading them loads
// the leader. A goroutine that samples figures: it would have to be closed, and would miss what
// happens between two samples.
package console
