package stay

import "github.com/mortise-lock/mortise/lockfsm"

// CommandKind is the kind of a Command.
type CommandKind uint8

// The commands.
const (
	Acquire CommandKind = iota + 1 // begin the request
	Release                        // release the request, which is granted
	Cancel                         // cancel the request, which waits
	InUse                          // answer the requests with Try up to Place
	Lapse                          // report that the pass with Token has ended for the reason Why
)

// Command is a command to the group.
type Command struct {
	Kind    CommandKind
	Request *Request
	Place   lockfsm.Revision // only with InUse, like Token
	Token   lockfsm.Token    // of the pass, also with Lapse
	Why     string           // only with Lapse
}

// NewsKind is the kind of a News.
type NewsKind uint8

// The kinds of news.
const (
	Granted  NewsKind = iota + 1 // the caller holds the lock with its token
	Wanted                       // another request waits for the lock that the caller holds
	Behind                       // the caller waits for a holder, as Info says
	Referred                     // the caller must ask the group with an ordinary request
	Failed                       // the call holds nothing; Err is the reason
	Lost                         // the lock of the caller is lost; Err is the reason
)

// News is a change for one caller.
type News struct {
	Kind   NewsKind
	Caller *Caller
	Err    error
	Info   any // with Behind and Lost: what the Set was told
}
