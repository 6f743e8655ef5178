// Package console shows a node to people and to probes, over HTTP: one handler with a page, the
// same as JSON, and the two questions that an orchestrator asks.
//
//	mux.Handle("/mortise/", http.StripPrefix("/mortise", console.New(node, console.Options{})))
//
// Below whatever path it is mounted at:
//
//	/             the page: what is wrong and the next step, the voters and a page of the members by zone (?after= the next), the sessions that end first, who holds what and who waits,
//	              the last abnormal ends of holds, a search by prefix (?prefix=), one key with its whole queue (?key=), who waits for whom as a picture
//	/status.json  the same for programs, with the same ?prefix=, ?key= and ?after=; tokens are strings, durations are seconds
//	/livez        200 unless [mortise.Node.Err] says that the node has ended: what a restart would help, and so never a question of the quorum
//	/readyz       200 if [mortise.Node.Ready] returns nil within half a second; else 503, and the body says in a sentence what it waits for
//
// HEAD is answered wherever GET is. The page is made on the server and can be read and searched
// without a script; with one it shows a change within two seconds. All of it is in the binary:
// nothing is loaded from elsewhere, and the Content-Security-Policy allows nothing else.
//
// # Guarantees
//
//   - It reads. The only thing that it can change is a hold that a person ends by force, and only
//     if [Options.MayForce] is set and allows the request. Such a request comes by POST, and is
//     refused if it comes from a page of another origin.
//   - Every answer comes within a few seconds whatever the group does, within half a second where
//     this instance knows that nobody leads, and otherwise within milliseconds; a probe's within
//     half a second. Without a leader the page shows what was seen last, and how old that is: of
//     the members the first page that this instance has.
//   - However many look, and however many keys there are, one instance has at most one question at
//     a time with the leader, asks the same again after a second at the earliest, and puts about
//     twenty questions for it, for 1,000 keys, 1,000 sessions and 100 members at most. What is left
//     out is counted, or said to be left out.
//   - The page and its JSON are answered to requests that name an IP address, localhost or one of
//     [Options.Hosts], and to no others: a page of another site whose name leads here gets nothing.
//     The two probes answer every request, and say why only to those that could see the page.
//   - No answer may be framed by another page.
//   - Keys, values and names are shown as text, whatever is in them; what is not printable, such as
//     a mark that turns the direction of writing, is shown as its number.
//
// # Concurrency
//
// The handler is safe for concurrent use. It starts no goroutine and has nothing to close: whoever
// finds the picture old asks for a new one, in the goroutine of the request, for all who wait for
// it.
//
// # Failure
//
// What cannot be had is said on the page, in place of what it would have shown; the page itself
// comes with 200 as long as it can say something. After Close of the node it says that.
//
// # Limits
//
// Whoever reaches the handler sees all keys, values, names and addresses: put your own
// authentication before it, and mount it at the paths of the two probes besides, where an
// orchestrator reaches them; the example does that. A search for a few keys among very many goes
// through all of them, a thousand at a time, for a second at most, and then says that there are
// others. A picture is up to a second old. What is longest held and most waited for is told of the
// 1,000 keys that have been there longest.
//
// Two requests of one instance may be two pieces of work that have nothing to do with each other.
// So the picture joins a hold and a wait of one instance only if the hold is older than
// [Options.Long], and a circle that it shows is a suspicion; one of more than six keys it does not
// show. Those that [mortise.DeadlockError] tells of are none, since they do not come to be.
//
// # Refused alternatives
//
// A liveness probe that asks the group: a cut network would have every instance restarted, and with
// them the group lost. A push to every viewer, or a refresh in the background: both cost while
// nobody looks. A page that is drawn by a script: it shows nothing when it matters and something is
// missing. Listing all keys: a million of them is no picture, and a load on the leader.
package console
