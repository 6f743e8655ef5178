// Package tofu serves the locks of the http backend of OpenTofu and Terraform: the requests of
// lock_address and unlock_address. The state itself is stored elsewhere.
//
// The protocol has no keepalive. So the lock of a run belongs to a lease that ends with the UNLOCK
// and not with a request ([Locks]). The value and the labels of the hold contain the lock info of
// the run ([Info]). So each agent can name the holder, and can end the hold by the ID of its lock
// info: it resumes the hold, and unlocks it. In the same way an agent takes the hold over from an
// agent that has died, if the same run asks again.
//
// Guarantees: a LOCK that is repeated with the same ID succeeds, and an UNLOCK that is repeated
// succeeds; one run does not end the hold of another. Concurrency: [Serve] has no state. Failure:
// the client repeats a request that is answered with 503. Limits: the store of the state does not
// compare tokens, so a run that was paused until its lock was lost can still write. The ID of a run
// is not a proof: a program with the same derived secret, or without one, can end its hold with
// this ID. A program with another derived secret needs force, if the session of the hold has not
// ended.
package tofu
