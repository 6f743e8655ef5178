// Package console shows the state of a node to people and to probes over HTTP. One handler serves a
// page, the same data as JSON, and the two questions that an orchestrator asks.
//
//	mux.Handle("/mortise/", http.StripPrefix("/mortise", console.New(node, console.Options{})))
//
// It can be mounted at any path, and serves below it:
//
//	/             the page: what is wrong and the next step, the voters and a page of the members
//	              by zone (?after= the next), the sessions that end first, who holds what and who
//	              waits, the last abnormal ends of holds, a search by prefix (?prefix=), one key
//	              with its whole queue (?key=), a picture of the waiting requests and their holders
//	/status.json  the same for programs, with the same ?prefix=, ?key= and ?after=; tokens are
//	              strings, durations are seconds
//	/livez        200 unless [mortise.Node.Err] says that the node has ended: whether a restart
//	              would help, and so never a question of the quorum
//	/readyz       200 if [mortise.Node.Ready] returns nil within half a second; else 503 and a
//	              sentence that says what the node waits for
//
// HEAD is answered wherever GET is. The page is made on the server, and can be read and searched
// without a script. With the script it shows a change within two seconds. All of it is in the
// binary: nothing is loaded from elsewhere, and the Content-Security-Policy allows nothing else.
//
// # Guarantees
//
//   - The handler reads. The only thing that it can change is a hold that an operator ends by
//     force, and only if [Options.MayForce] is set and allows the request. Such a request must be a
//     POST, and is rejected if it comes from a page of another origin.
//   - Every answer comes within a few seconds whatever the group does, within half a second if this
//     instance knows that there is no leader, and otherwise within milliseconds. A probe is
//     answered within half a second. Without a leader the page shows what was seen last, and its
//     age; of the members it shows the first page that this instance has.
//   - Whatever the number of viewers and of keys, one instance has at most one question at a time
//     with the leader, and repeats a question after a second at the earliest. A question takes
//     about twenty calls, for at most 1,000 keys, 1,000 sessions and 100 members. The page counts
//     what it leaves out, or says that it leaves something out.
//   - The page and its JSON answer requests that name an IP address, localhost or one of
//     [Options.Hosts], and no others: a page of another site whose name resolves to this address
//     gets nothing. The two probes answer every request, but give reasons only to requests that
//     could see the page.
//   - No other page can frame an answer.
//   - Keys, values and names are shown as text, whatever they contain. Unprintable characters, such
//     as a mark that changes the direction of writing, are shown as numbers.
//
// # Concurrency
//
// The handler is safe for concurrent use. It starts no goroutine and needs no closing: a request
// that finds the data old asks for new data in its own goroutine, and others wait for that.
//
// # Failure
//
// The page says what it could not get, in the place where it would have shown it. The page itself
// is answered with 200 as long as it can be made. After Close of the node it says so.
//
// # Limits
//
// A client that reaches the handler sees all keys, values, names and addresses. Put your own
// authentication in front of it, and mount it a second time at the paths of the two probes where an
// orchestrator reaches them, as the example does. A search for a few keys among very many reads all
// of them, a thousand at a time, for at most a second, and then says that there are others. The
// data is up to a second old. The lists of the longest held and the most waited for cover the 1,000
// oldest keys.
//
// Two requests of one instance may belong to unrelated work. So the picture joins a hold and a wait
// of one instance only if the hold is older than [Options.Long], and a circle that it shows is only
// a suspicion. It shows no circle of more than six keys. The circles of [mortise.DeadlockError] do
// not appear, since they are prevented.
//
// # Refused alternatives
//
// A liveness probe that asks the group: a network partition would restart every instance, and the
// group would be lost with them. A push to every viewer, or a refresh in the background: both cost
// while there is no viewer. A page that a script draws: it shows nothing just when something is
// broken. Listing all keys: a million of them is no picture, and a load on the leader.
package console
