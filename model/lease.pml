/*
 * A model of the lease hand-over for the model checker Spin; run.sh checks it. It models what session, lockfsm and raftlog do together
 * when a lock passes from one instance to the next while leaders change, messages are late and processes stop. Spin visits every state
 * that any interleaving can reach. Comments name the Go functions that a step models.
 *
 * PROCESSES
 *   One key. Client 0 is modelled whole: it waits, holds, cancels, releases, renews, and moves to any voter at any moment (which also
 *   models a stream that ends, a redirect and a timeout). No step ever has to happen. So a client that is paused or killed is a client
 *   that does nothing from some moment on.
 *   Client 1 is "the others": it requests and releases whenever the log can take it, and believes that it holds the lock from the
 *   moment at which the log says so. No real client can believe this earlier, so no effect of a second client on the first is left out.
 *   By symmetry, client 0 covers the belief of a real second client. In COPY and PAIR client 1 is a whole client too.
 *   Two voters lead in turn, in any order, TERMS terms in all. A deposed leader may act as a leader forever: it is paused or cut off.
 *   A third voter only counts for majorities.
 *
 * TIME
 *   A global clock may tick at any moment, so every process may be paused and every message be late by any number of ticks. A state
 *   contains no absolute time, only durations that remain or have passed. So time has no end, and the check is complete within the
 *   bounds on terms, attachments and requests. Without DRIFT the margin of a lease is 0 ticks, so that the check finds a rule that is one tick
 *   too generous.
 *
 * THE LOG
 *   truth   the state after everything that is committed: rep[TRUTH]
 *   tail    what the leader has appended and is not committed. At a change of leader a prefix of any length is committed together
 *           with the first entry of the next one, and the rest is gone. An election and that first entry are one step: before it the
 *           new leader can neither commit nor be confirmed, and a leader that never commits it changes nothing.
 *   lag[l]  the committed entries that leader l has not applied; rep[l] is its state. A follower applies everything before it leads.
 *           So the lag of a follower has no effect, and a follower has no state of its own here.
 *
 * MESSAGES
 *   up[]    from a client to a voter, in order, under way for any time. When a client moves, these messages arrive late (even
 *           after a later Attach elsewhere) or are lost.
 *   down[]  to a client. Messages of another attachment, which it would ignore, are not kept. A full queue ends the attachment.
 *
 * WHAT IS CHECKED, in grant(), take_grant() and proctype monitor
 *   promise 1  at most one client believes that it holds the lock, and that client is the owner in the log, which has at most one
 *   promise 2  tokens rise from holder to holder, as the holders receive them
 *   promise 3  no client is granted the lock while another believes that it holds it; and the lemma behind it: while a lease runs at its
 *              client, its session lives in the log
 *   promise 4  (LIVE) after the last fault the waiter is served within TTL + 1 ticks, also if the stay always has a next caller (STAY)
 *   promise 6  when all is quiet, the log holds for a client what its callers want and nothing else
 *   Most bugs break the lemma first, since Spin stops at the first broken assertion.
 *
 * WHAT IS NOT MODELLED
 *   Several keys, locks or callers of a client; queues longer than two, and so their order (TestTwin); Try, limits, Close, Leaving,
 *   Born and the grace; snapshots, changes of voters, loss of data; duplicated or forged frames (nonces, numbers below `next`); a
 *   late second Open that makes an unused session; what the client does after its session is gone; the confirmation of a release;
 *   stalls, and expiries held back while a renewal waits (both only lengthen leases: promise 4 for a slow leader needs them, safety
 *   does not); a leader that withholds acknowledgements from a client that does not hear (it only shortens leases); more than one
 *   renewal of a client under way. Queues that are thrown away when a leader changes are not modelled as far as nothing of them reaches
 *   a later term, except for an expiry: the model shows that the state machine's check of the term is enough for that.
 *
 * SCENARIOS (-D...; each is a separate run, so that each stays small)
 *   none     the sessions are open and attached to voter 0
 *   STILL    no time passes and no lease ends: requests, cancels and moves, with larger bounds
 *   OPENING  client 0 must still open its session, and may send Open twice
 *   DRIFT    client 0's clock loses up to one tick in every TTL; the margin is one tick
 *   COPY     client 1 is a copy of the process of client 0, which holds the lock: a virtual machine restored twice
 *   LIVE     the others hold and are killed; at some moment faults end, and from then on no step is delayed
 *   PAIR     two whole clients
 *   STAY     client 0 keeps the lock after an Unlock: the lock is a stay. Its callers get passes, without a message. Client 0 may give
 *            the stay back at any time. With LIVE, the others wait, and client 0 passes as long as it may: each caller holds the lock
 *            until the next tick, and after the recall only one more caller gets it.
 *
 * PLANTED BUGS (-D...; each must be found): see the word BUG below and the list in run.sh. RULE names the rule that the bug breaks.
 *   internal/lab/check/leases.go has each rule by the same name, for the traces of the simulation.
 */

#ifdef DRIFT
#define MARGIN 1
#else
#define MARGIN 0
#endif
#ifdef NO_MARGIN                    /* BUG: the deadline of a lease is that of the keeper; it breaks RULE margin */
#undef MARGIN
#define MARGIN 0
#endif
#ifndef TTL
#define TTL 3                       /* of a session, in ticks */
#endif
#define LEASE (TTL - MARGIN)        /* how long a client trusts a renewal from its sending: session/lease.go, deadline */
#ifndef TERMS
#define TERMS 2
#endif
#ifndef EPOCHS
#define EPOCHS 2                    /* attachments of a client, the first included */
#endif
#ifndef NUMBERS
#define NUMBERS 2                   /* requests of a client, and of the others */
#endif
#ifndef CANCELS
#define CANCELS 1                   /* waits that a client may cancel */
#endif
#ifndef TIMES
#define TIMES 1                     /* requests of the others */
#endif
#ifndef TAIL
#define TAIL 1                      /* entries that are appended and not committed */
#endif
#if !defined(COPY) && !defined(PAIR)
#define OTHERS                      /* client 1 is "the others" */
#endif

#ifdef STAY
#define STAYS true
#else
#define STAYS false
#endif

#ifdef STILL
#define RENEWS 0
#else
#define RENEWS 1
#endif

#define TRUTH 2                     /* index of the committed state; 0 and 1 are those of the voters */
#define NONE 0
#define NO_ENTRY 0

#ifdef COPY
#define sid(c) 0                    /* the copy speaks for the same session */
#else
#define sid(c) (c)
#endif

/* Commands of the log, and what else a client sends (RENEW). */
mtype = { OPEN, ATTACH, ACQUIRE, FREE, EXPIRE, FIRST, RENEW,
/* Answers. GRANTED is the Fired or immediate State; ATTACHED carries the states of what was named. */
          OPENED, ATTACHED, REFUSED, GRANTED, RENEWED, WANTED };

/* A replica's state machine: lockfsm.Machine. An entry is known by its request's number; with one key and two sessions the queue is the
   owner and the other. */
typedef Replica {
  byte life[2];                     /* of a session: 0 not opened, 1 lives, 2 ended */
  byte epoch[2];
  byte entry[2];                    /* the number of the session's entry; 0 means none */
  byte owner;                       /* session + 1 of the granted entry; 0 means free */
  byte token;                       /* of the newest grant: the revision counter, counted in grants */
};
Replica rep[3];

/* raft */
byte term = 1;                      /* the newest term whose first entry is committed */
byte leader = 0;                    /* its leader: only its proposals can be committed, and only it is confirmed by a majority */
chan tail = [TAIL] of { mtype, byte, byte, byte, bit };    /* kind, client, epoch, number; Expire: decided in the entry's own term */
chan lag[2] = [TAIL + 1] of { mtype, byte, byte, byte, bit };

/* Keepers: session.KeeperCore on each voter. Indices at(l, c) are for client c's attachment or session at voter l. */
#define at(l, c) ((l) * 2 + (c))
mtype = { FOLLOWS, SILENT, LEADS }; /* SILENT: leader, its own first entry is not applied */
mtype role[2] = FOLLOWS;
byte attached[4];                   /* the epoch of the attachment; 0 means none */
bit live[4];                        /* its Attach is applied */
byte renewal[4];                    /* 0 none, 1 arrived, 2 a quorum has confirmed the lead since */
byte need[4];                       /* then: entries to apply until the read index is reached */
byte due[4];                        /* ticks until the session may be expired */
bit expiring[4];

/* Clients: session.ClientCore. */
mtype = { BEGINS, OPENING_, OPEN_, ATTACHING, ATTACHED_, GONE, DEAD };
mtype phase[2];
byte target[2];
byte epoch[2];
byte lease[2];                      /* ticks until the deadline; 0 means that nothing is held */
bit flying[2];                      /* a renewal is not acknowledged yet */
byte age[2];                        /* ticks since it was sent; while opening, since Open was first sent */
mtype = { IDLE, UNSENT, ASKED, HELD, KEPT };                /* KEPT: a stay without a caller */
mtype want[2] = IDLE;               /* what the caller of Lock knows or waits for */
byte number[2];                     /* of the newest request */
byte named[2];                      /* the number that the last Attach named, until it is answered */
byte freeing[2];                    /* the number whose Release or Cancel has not left yet */
byte tokens[2];                     /* of the newest lock held, for promise 2 */
byte highest;                       /* token that any client has held */
byte opens;                         /* sendings of Open left */
byte cancels = CANCELS;                   /* waits that may still be cancelled */
byte recall;                        /* LIVE and STAY: 1 after the recall, 2 after the last pass that is allowed then */
bit changed;                        /* LIVE and STAY: client 0's caller has unlocked in this tick */
chan up[4] = [2] of { mtype, byte, byte };              /* kind, epoch, number */
chan down[2] = [2] of { mtype, byte, byte, byte };      /* kind, epoch, number, token */

bit calm;                           /* LIVE: no more faults */
byte since;                         /* LIVE: ticks since calm began; COPY: since the last Attach in the log */
byte slip;                          /* DRIFT: ticks until client 0's clock may lose one again */

/* Scratch, not part of the state: always written before it is read, in the same d_step or right before it. (Spin does not restore hidden
   variables when it goes back, so no choice may depend on one.) */
hidden mtype K; hidden byte C; hidden byte E; hidden byte N; hidden byte T; hidden byte L; hidden byte fired; hidden byte ok;

/* Hold.Err() == nil: computed from the clock when it is asked. The others know the log at once. */
#ifdef OTHERS
#define believes(c) ((c) == 0 && want[0] == HELD && lease[0] > 0 || (c) == 1 && rep[TRUTH].owner == 2)
#define others_renew (phase[1] != DEAD)
#else
#define believes(c) (want[c] == HELD && lease[c] > 0)
#define others_renew false
#endif
#define keeps(c) (want[c] == HELD || want[c] == KEPT)
#define alive(c) (phase[c] != GONE && phase[c] != DEAD)
#define linked(c) (phase[c] == ATTACHING || phase[c] == ATTACHED_)

/* ---- lockfsm: the same on every replica r ---- */

inline grant(r, s) {
  rep[r].owner = s + 1;
  rep[r].token++;
  fired = s + 1;
#ifndef COPY
  assert(r != TRUTH || !believes(1 - (s)));             /* promise 3: the other knew of its loss before */
#ifdef OTHERS
  if :: r == TRUTH && s == 1 -> highest = rep[r].token :: else fi
#endif
#endif
}

/* queue.go, remove and fire: an entry is removed, and the head of the queue is granted. */
inline remove(r, s) {
  rep[r].entry[s] = NO_ENTRY;
  if
  :: rep[r].owner == s + 1 ->
    rep[r].owner = NONE;
    if :: rep[r].entry[1 - s] != NO_ENTRY -> grant(r, 1 - s) :: else fi
  :: else
  fi
}

#ifdef EXPIRE_IN_LATER_TERM                             /* BUG: an expiry decided in an earlier term is carried out; it breaks RULE own-term */
#define expire_counts(same) true
#else
#define expire_counts(same) (same)                      /* the entry's term is the command's */
#endif

/* Machine.Apply. It sets ok and, if a client was granted the lock, fired. */
inline apply(r, k, s, e, n, same) {
  ok = false;
  fired = NONE;
  if
  :: k == OPEN ->                                       /* open: idempotent by nonce */
    if :: rep[r].life[s] == 0 -> rep[r].life[s] = 1 :: else fi;
    ok = (rep[r].life[s] == 1)
  :: k == ATTACH && rep[r].life[s] == 1 && e > rep[r].epoch[s] ->
    ok = true;
    rep[r].epoch[s] = e;
#ifdef COPY
    if :: r == TRUTH -> since = 0 :: else fi;
#endif
    if                                                  /* attach: what it does not name is removed */
    :: rep[r].entry[s] != NO_ENTRY && rep[r].entry[s] != n -> remove(r, s)
    :: else
    fi
  :: k == ACQUIRE && rep[r].life[s] == 1 && e == rep[r].epoch[s] && rep[r].entry[s] == NO_ENTRY ->
    ok = true;                                          /* acquire */
    rep[r].entry[s] = n;
    if :: rep[r].owner == NONE -> grant(r, s) :: else fi
  :: k == FREE && rep[r].life[s] == 1 && e == rep[r].epoch[s] && rep[r].entry[s] == n ->
    ok = true;                                          /* release, cancel: by number */
    remove(r, s)
  :: k == EXPIRE && rep[r].life[s] == 1 && expire_counts(same) ->
    ok = true;                                          /* expire */
    rep[r].life[s] = 2;
    if :: rep[r].entry[s] != NO_ENTRY -> remove(r, s) :: else fi
  :: else
  fi
}


/* ---- raftlog ---- */

inline commit_head_for(l) {
  tail?K, C, E, N, T;
  apply(TRUTH, K, sid(C), E, N, T);
  lag[l]!K, C, E, N, T
}

inline copy_truth(l) {
  rep[l].life[0] = rep[TRUTH].life[0]; rep[l].life[1] = rep[TRUTH].life[1];
  rep[l].epoch[0] = rep[TRUTH].epoch[0]; rep[l].epoch[1] = rep[TRUTH].epoch[1];
  rep[l].entry[0] = rep[TRUTH].entry[0]; rep[l].entry[1] = rep[TRUTH].entry[1];
  rep[l].owner = rep[TRUTH].owner; rep[l].token = rep[TRUTH].token
}

/* KeeperCore.throwAway for one client: on any change of term or role. */
inline throw_away(l, c) {
  attached[at(l, c)] = 0; live[at(l, c)] = 0; renewal[at(l, c)] = 0; need[at(l, c)] = 0; expiring[at(l, c)] = 0;
#ifndef NO_EXTEND
  due[at(l, c)] = 0
#endif
}

/* Not a rule, but a reduction: what a deposed leader decides about expiries has no effect, so its deadlines do not matter. */
inline forget_deadlines(l) {
#if !defined(NO_EXTEND) && !defined(EXPIRE_IN_LATER_TERM)
  due[at(l, 0)] = 0; due[at(l, 1)] = 0
#else
  skip
#endif
}
#ifdef EXPIRE_IN_LATER_TERM
#define decides(l) (role[l] == LEADS)
#else
#define decides(l) (role[l] == LEADS && l == leader)
#endif

inline empty_queue(q) {
  do :: len(q) > 0 -> q?_, _, _, _, _ :: else -> break od
}

proctype raft() {
  byte next;
  do
  :: d_step {                                           /* a majority has it */
      nempty(tail) && nfull(lag[leader]) ->
      commit_head_for(leader)
    }
  :: atomic {                                           /* either voter becomes leader, even the last one, and its first entry is committed */
      term < TERMS && !calm ->
      if :: next = 0 :: next = 1 fi;
      d_step {
        role[next] = SILENT;                            /* KeeperCore.Role */
        forget_deadlines(leader);
        throw_away(next, 0);
        throw_away(next, 1);
        empty_queue(lag[next]);                         /* all of it is applied by now: a follower applies at once */
        copy_truth(next)
      }
      do
      :: d_step { nempty(tail) -> commit_head_for(next) }
      :: break
      od;
      d_step {
        empty_queue(tail);                              /* the rest was never on a majority and is overwritten */
        lag[next]!FIRST, 0, 0, 0, 0;
        term++;
        leader = next;
        next = 0
      }
    }
  od
}

/* ---- session: the keeper ---- */

/* Propose(term, ...) */
#define can_propose(l) ((l) != leader || nfull(tail))
inline propose(l, k, c, e, n) {
  tail!k, c, e, n, 1
}

/* KeeperCore.reply, and Replied(false) if the queue is full: the attachment ends. */
inline tell(l, c, k, e, n, t) {
  if
  :: !alive(c) || k != OPENED && (target[c] != l || epoch[c] != e || !linked(c)) -> skip       /* not running, or ignored */
  :: else ->
    if
    :: nfull(down[c]) -> down[c]!k, e, n, t
    :: full(down[c]) -> detach(l, c)
    fi
  fi
}

inline detach(l, c) {
  attached[at(l, c)] = 0; live[at(l, c)] = 0; renewal[at(l, c)] = 0; need[at(l, c)] = 0
}

/* KeeperCore.Leads: every session gets its full TTL. */
inline leads(l) {
  role[l] = LEADS;
#ifndef NO_EXTEND                                       /* BUG: the new leader trusts the deadlines that it remembers; it breaks RULE full-ttl */
  due[at(l, 0)] = (rep[l].life[0] == 1 -> TTL : 0);
  due[at(l, 1)] = (rep[l].life[1] == 1 -> TTL : 0)
#endif
}

#ifdef OTHERS
#define listens(session) ((session) == 1)
#else
#define listens(client) true
#endif

/* The other session waits for a stay. The replica has no field for this: the queue is the owner and the other. */
#if defined(STAY) && defined(LIVE)
#define behind(l, c) ((c) == 0 && rep[l].owner == 1 && rep[l].entry[1] != NO_ENTRY)
#else
#define behind(l, c) false
#endif

/* KeeperCore.Applied: the results in the log, for the clients attached here. */
proctype applied(byte l) {
  do
  :: d_step {
      nempty(lag[l]) ->
      lag[l]?K, C, E, N, T;
      if :: need[at(l, 0)] > 0 -> need[at(l, 0)]-- :: else fi;
      if :: need[at(l, 1)] > 0 -> need[at(l, 1)]-- :: else fi;
      if
      :: K == FIRST -> leads(l)
      :: else ->
        apply(l, K, sid(C), E, N, T);
        if
        :: K == OPEN && ok ->                           /* appliedOpen */
          if :: due[at(l, sid(C))] == 0 && decides(l) -> due[at(l, sid(C))] = TTL :: else fi;
          tell(l, C, OPENED, 0, 0, 0)
        :: K == ATTACH && attached[at(l, C)] == E && ok -> /* appliedAttach: states and Attached */
          live[at(l, C)] = 1;
          N = rep[l].entry[sid(C)];
          T = (rep[l].owner == sid(C) + 1 -> rep[l].token : 0);
          tell(l, C, ATTACHED, E, N, T);
#ifndef RECALL_TOLD_ONCE                                /* BUG: the recall is lost with the attachment to which it was sent; it breaks RULE recall-is-repeated */
          if :: behind(l, C) -> tell(l, C, WANTED, E, N, 0) :: else fi
#endif
        :: K == ATTACH && attached[at(l, C)] == E && !ok ->
          detach(l, C);
          tell(l, C, REFUSED, E, 0, 0)
        :: K == EXPIRE && ok ->                         /* gone */
          detach(l, C);
          due[at(l, sid(C))] = 0;
          expiring[at(l, sid(C))] = 0
        :: K == ACQUIRE && ok && behind(l, 1 - sid(C)) && role[l] == LEADS && live[at(l, 1 - C)] ->       /* wanted */
          tell(l, 1 - C, WANTED, attached[at(l, 1 - C)], rep[l].entry[1 - C], 0)
        :: else
        fi;
#ifndef GRANT_LOST                                      /* BUG: the keeper does not report to which client a command has granted the lock; it breaks RULE grant-is-told */
        if                                              /* fired, appliedAcquire */
        :: fired != NONE && listens(fired) && role[l] == LEADS && live[at(l, fired - 1)] ->
          C = fired - 1;
          E = attached[at(l, C)];
          N = rep[l].entry[C];
          T = rep[l].token;
          tell(l, C, GRANTED, E, N, T)
        :: else
        fi
#endif
      fi
    }
  od
}

#ifdef ACK_BEFORE_APPLIED                               /* BUG: the first entry is committed, and that is regarded as enough; it breaks RULE applied-first */
#define serving(l) (role[l] == LEADS || role[l] == SILENT)
#else
#define serving(l) (role[l] == LEADS)
#endif

#ifdef STALE_ACK                                        /* BUG: a leader acknowledges without confirming that it leads; it breaks RULE lead-confirmed */
#define confirmable(l) true
#else
#define confirmable(l) ((l) == leader)
#endif

#ifdef ACK_BEFORE_APPLIED
#define acknowledgeable(l, c) true
#define current(l, c) (rep[l].epoch[sid(c)] <= attached[at(l, c)])
#define read_index(l) 0
#else
#define acknowledgeable(l, c) live[at(l, c)]            /* await */
#ifdef RENEW_OLD_EPOCH
#define current(l, c) true
#else
#define current(l, c) (rep[l].epoch[sid(c)] == attached[at(l, c)])
#endif
#define read_index(l) len(lag[l])
#endif

#ifdef ACK_WHILE_EXPIRING                               /* BUG: a renewal that arrives after the decision is acknowledged; it breaks RULE not-expiring */
#define not_expiring(l, c) true
#else
#define not_expiring(l, c) !expiring[at(l, sid(c))]
#endif

#define renewable(l, c, e) (attached[at(l, c)] == e)    /* takeRenewals */

/* beginAttachment: one attachment per session, the one with the highest epoch. Only a copy can have another. */
#ifdef COPY
#define other_is_newer(l, c, e) (attached[at(l, 1 - (c))] >= e)
#else
#define other_is_newer(l, c, e) false
#endif
inline end_other(l, c) {
#if defined(COPY) && !defined(RENEW_OLD_EPOCH)          /* BUG: renewals on an older attachment are still acknowledged; it breaks RULE newest-attachment */
  L = 1 - c;
  detach(l, L)
#else
  skip
#endif
}

/* The steps of one client with the keeper of voter l. */
proctype keeper(byte l, c) {
  do
  :: d_step {                                           /* Receive */
      nempty(up[at(l, c)]) && can_propose(l) ->
      up[at(l, c)]?K, E, N;
      if
      :: !serving(l) -> skip                            /* the client asks again, here or elsewhere */
      :: serving(l) && l != leader && K != RENEW -> skip        /* needs the log, and a deposed leader can commit nothing */
      :: serving(l) && l == leader && K == OPEN -> propose(l, OPEN, c, 0, 0)
      :: serving(l) && l == leader && K == ATTACH ->                   /* admitAttach, and takeRenewals: a renewal travels with it */
        if
        :: rep[l].life[sid(c)] == 1 && E > rep[l].epoch[sid(c)] && E > attached[at(l, c)] && !other_is_newer(l, c, E) ->
          end_other(l, c);
          attached[at(l, c)] = E;
          live[at(l, c)] = 0;
          renewal[at(l, c)] = RENEWS;
          need[at(l, c)] = 0;
          propose(l, ATTACH, c, E, N)
        :: else -> tell(l, c, REFUSED, E, 0, 0)
        fi
      :: serving(l) && l == leader && (K == ACQUIRE || K == FREE) && attached[at(l, c)] == E -> propose(l, K, c, E, N)
      :: serving(l) && K == RENEW && renewable(l, c, E) -> renewal[at(l, c)] = 1
      :: else -> skip                                   /* from another attachment */
      fi
    }
  :: d_step {                                           /* Round is over: a majority has confirmed the lead after the arrival */
      renewal[at(l, c)] == 1 && confirmable(l) && acknowledgeable(l, c) ->
      renewal[at(l, c)] = 2;
      need[at(l, c)] = read_index(l)
    }
  :: d_step {                                           /* Confirmed: applied up to the read index */
      renewal[at(l, c)] == 2 && need[at(l, c)] == 0 ->
      renewal[at(l, c)] = 0;
      if
      :: rep[l].life[sid(c)] == 1 && current(l, c) && not_expiring(l, c) ->
        if :: decides(l) -> due[at(l, sid(c))] = TTL :: else fi;
        tell(l, c, RENEWED, attached[at(l, c)], 0, 0)
      :: else
      fi
    }
  :: atomic {                                           /* expire: marked and proposed, in the term in which it was decided */
      c == sid(c) && decides(l) && rep[l].life[c] == 1 && due[at(l, c)] == 0 && !expiring[at(l, c)] && can_propose(l) ->
      expiring[at(l, c)] = 1;
      if
      :: l == leader -> tail!EXPIRE, c, 0, 0, 1
      :: l != leader -> skip
#ifdef EXPIRE_IN_LATER_TERM                             /* raft forwards it to the next leader; otherwise it would be rejected and nothing would happen */
      :: l != leader && nfull(tail) -> tail!EXPIRE, c, 0, 0, 0
#endif
      fi
    }
  od
}



/* ---- session: the client ---- */

#ifdef ORIGINAL_STAYS                                   /* COPY: the original notices nothing; a smaller state space */
#define may_move(c) ((c) == 1)
#else
#define may_move(c) true
#endif
#define can_ask(c) (alive(c) && may_move(c) && (phase[c] == BEGINS || phase[c] == OPENING_ -> opens > 0 : epoch[c] < EPOCHS) && (!calm || must_move(c)))
#define under_way(c) (len(up[at(0, c)]) + len(up[at(1, c)]) > 0)
#define must_move(c) (role[leader] == LEADS && !under_way(c) && attached[at(leader, c)] != epoch[c])

/* The stream to the old target has ended; T: what it still carried is lost, and not only late. */
inline leave_target(c) {
  do :: T && len(up[at(0, c)]) > 0 -> up[at(0, c)]?_, _, _ :: else -> break od;
  do :: T && len(up[at(1, c)]) > 0 -> up[at(1, c)]?_, _, _ :: else -> break od;
  do :: phase[c] != OPENING_ && len(down[c]) > 0 -> down[c]?_, _, _, _ :: else -> break od
}

#ifdef SECOND_SENDING                                   /* BUG: the lease counts from the last sending of Open; it breaks RULE first-sending */
#define SECOND true
#else
#define SECOND false
#endif

#ifdef FREE_NOT_NAMED                                   /* BUG: Attach does not name a stay without a caller; it breaks RULE names-what-is-kept */
#define named_as_held(c) (want[c] == HELD)
#else
#define named_as_held(c) keeps(c)
#endif

/* writeQuestion: Open, or Attach, which names the request that a caller still wants and comes with a renewal. */
inline write_question(c, l) {
  target[c] = l;
  if
  :: phase[c] == BEGINS || phase[c] == OPENING_ ->
    opens--;
    up[at(l, c)]!OPEN, 0, 0;
    if :: phase[c] == BEGINS || SECOND -> age[c] = 0 :: else fi;        /* the lease counts from the first sending */
    phase[c] = OPENING_
  :: else ->
    epoch[c]++;
    named[c] = (want[c] == ASKED || named_as_held(c) -> number[c] : NO_ENTRY);
    up[at(l, c)]!ATTACH, epoch[c], named[c];
    freeing[c] = NO_ENTRY;                              /* dropFrees: it does not name them, which frees them too */
    flying[c] = RENEWS;
    age[c] = 0;
    phase[c] = ATTACHING
  fi
}


/* lose, loseAll: the hold is over for good, and its release is due. */
inline lose(c) {
  freeing[c] = number[c];
#ifndef REVIVE_AFTER_LOSS                               /* BUG: the handle is not marked, and only checks the deadline; it breaks RULE loss-is-final */
  want[c] = IDLE
#endif
}

/* grant: to a waiting caller if the lease has time left; otherwise it is released and requested again. */
inline take_grant(c, t) {
  if
  :: lease[c] > 0 ->
    want[c] = HELD;
    assert(t >= highest && t > tokens[c]);              /* promise 2 */
    highest = t;
    tokens[c] = t
  :: else ->
    freeing[c] = number[c];
    want[c] = UNSENT
  fi
}

/* renewed: only the time of sending counts, and the deadline never moves back. */
inline renew_lease(c) {
#ifdef DEADLINE_FROM_ACK                                /* BUG: the deadline counts from the acknowledgement; it breaks RULE sent-time */
  lease[c] = LEASE;
#else
  if :: LEASE - age[c] > lease[c] -> lease[c] = LEASE - age[c] :: else fi;
#endif
  flying[c] = 0;
  age[c] = 0
}

/* forgetSession. What is still wanted would be requested under another session: here the client's part ends. */
inline leave_stage(c, how) {
  phase[c] = how;
  want[c] = IDLE; lease[c] = 0; flying[c] = 0; age[c] = 0; freeing[c] = NO_ENTRY; named[c] = NO_ENTRY;
  do :: len(down[c]) > 0 -> down[c]?_, _, _, _ :: else -> break od;
  skip                                                  /* a d_step must not end in a loop */
}

proctype client(byte c) {
  do
  :: atomic {                                           /* Down, redirected, unanswered: to any voter at any time */
      can_ask(c) ->
      if
      :: L = 0; T = 1
      :: L = 1; T = 1
      :: under_way(c) && nfull(up[at(0, c)]) -> L = 0; T = 0
      :: under_way(c) && nfull(up[at(1, c)]) -> L = 1; T = 0
      fi;
      d_step { leave_target(c); write_question(c, L) }
    }
  :: d_step {                                           /* tickAttached: renew, at most once a tick */
      phase[c] == ATTACHED_ && !flying[c] && lease[c] < LEASE && nfull(up[at(target[c], c)]) ->
      up[at(target[c], c)]!RENEW, epoch[c], 0;
      flying[c] = 1;
      age[c] = 0
    }
  :: d_step {                                           /* writeRequest: a call of Lock, or a repeated request */
      linked(c) && (want[c] == IDLE && !calm || want[c] == UNSENT) && freeing[c] == NO_ENTRY && number[c] < NUMBERS && lease[c] > 0 &&
        nfull(up[at(target[c], c)]) ->
      number[c]++;
      up[at(target[c], c)]!ACQUIRE, epoch[c], number[c];
      want[c] = ASKED
    }
  :: d_step {                                           /* a context ends: Lock returns its error at once, the cancel is sent later */
      want[c] == ASKED && cancels > 0 && !calm ->
      cancels--;
#ifndef CANCEL_DROPPED                                  /* BUG: the cancel is dropped, and with it a grant that crosses it; it breaks RULE cancel-frees */
      freeing[c] = number[c];
#endif
      want[c] = IDLE
    }
  :: d_step {                                           /* Unlock */
      believes(c) && !calm && !STAYS ->
      freeing[c] = number[c];
      want[c] = IDLE
    }
#ifdef STAY
  :: d_step {                                           /* Stays.Unlock */
      believes(c) && !(calm && changed) ->
      want[c] = KEPT;
      changed = calm
    }
  :: d_step {                                           /* Stays.Lock: the pass has a token between that of the stay and the next grant */
      want[c] == KEPT && recall < 2 ->
      want[c] = HELD;
      assert(tokens[c] == highest);                     /* promise 2 */
#ifndef RECALL_UNHEEDED                                 /* BUG: callers are served for as long as there are any; it breaks RULE recall-is-heeded */
      if :: recall == 1 -> recall = 2 :: else fi
#endif
    }
  :: d_step {                                           /* Stays: the stay was recalled, or not used for a time */
      want[c] == KEPT && freeing[c] == NO_ENTRY && (!calm || recall > 0) ->
      freeing[c] = number[c];
#ifndef PASS_AFTER_RELEASE                              /* BUG: callers still get passes when the stay is given back; it breaks RULE released-is-over */
      want[c] = IDLE
#endif
    }
#endif
  :: d_step {                                           /* writeCommands: commands that free something are sent first */
      linked(c) && freeing[c] != NO_ENTRY && nfull(up[at(target[c], c)]) ->
      up[at(target[c], c)]!FREE, epoch[c], freeing[c];
      freeing[c] = NO_ENTRY
    }
  :: d_step {                                           /* Receive */
      nempty(down[c]) ->
      down[c]?K, E, N, C;
      if
      :: K == OPENED && phase[c] == OPENING_ ->         /* opened */
        phase[c] = OPEN_;
        if :: LEASE - age[c] > 0 -> lease[c] = LEASE - age[c] :: else fi;
        age[c] = 0
      :: K == ATTACHED && E == epoch[c] && phase[c] == ATTACHING ->
        phase[c] = ATTACHED_;
        if
        :: named[c] != NO_ENTRY && named[c] == number[c] && N == number[c] && want[c] == ASKED && C > 0 -> take_grant(c, C)
        :: named[c] != NO_ENTRY && named[c] == number[c] && N != number[c] && want[c] == ASKED -> want[c] = UNSENT
        :: named[c] != NO_ENTRY && named[c] == number[c] && N != number[c] && keeps(c) -> want[c] = IDLE
        :: else
        fi;
        named[c] = NO_ENTRY
      :: K == REFUSED && E == epoch[c] -> leave_stage(c, GONE)         /* sessionGone */
      :: K == GRANTED && E == epoch[c] && want[c] == ASKED && N == number[c] -> take_grant(c, C)
      :: K == RENEWED && E == epoch[c] && flying[c] -> renew_lease(c)
      :: K == WANTED && E == epoch[c] && keeps(c) && N == number[c] && recall == 0 -> recall = 1
      :: else -> skip                                   /* a grant that crossed its cancel, which is under way */
      fi
    }
  od
}


/* ---- time ---- */

inline older(c) {
  if :: (flying[c] || phase[c] == OPENING_) && age[c] < TTL -> age[c]++ :: else fi;
  if
  :: lease[c] > 0 ->
    lease[c]--;
    if :: lease[c] == 0 && keeps(c) -> lose(c) :: else fi       /* begin: before anything else is read */
  :: else
  fi
}

inline nearer(i) { if :: due[i] > 0 -> due[i]-- :: else fi }

#ifdef LIVE
#define may_tick (!calm || timeout)                     /* after the faults time passes only when no process can do a step */
#else
#define may_tick true
#endif

#ifdef OTHERS
/* The others: see the top. Their commands enter the log whenever that is possible. */
proctype others() {
  do
  :: d_step {
      alive(1) && rep[TRUTH].life[1] == 1 && rep[TRUTH].entry[1] == NO_ENTRY && number[1] < TIMES && nfull(tail) ->
      number[1]++;
      tail!ACQUIRE, 1, 1, number[1], 1
    }
#ifndef LIVE
  :: d_step {                                           /* also the end of a session, if it holds */
      rep[TRUTH].entry[1] != NO_ENTRY && nfull(tail) ->
      tail!FREE, 1, 1, rep[TRUTH].entry[1], 1
    }
#elif !defined(STAY)
  :: d_step { alive(1) && !calm -> phase[1] = DEAD }    /* it holds from the beginning, and is killed */
#endif
  od
}
#endif

#ifdef COPY
#define SINCE_ATTACH true
#else
#define SINCE_ATTACH false
#endif

proctype time() {
  do
  :: atomic {
      may_tick ->
      if
      :: ok = 1
#ifdef DRIFT
      :: slip == 0 -> slip = TTL + 1; ok = 0            /* client 0's clock loses this tick */
#endif
      fi;
      d_step {
        if :: ok -> older(0) :: else fi;
        nearer(0); nearer(2);
#ifndef OTHERS
        older(1);
#endif
        if :: others_renew -> skip :: else -> nearer(1); nearer(3) fi;
        changed = 0;
        if :: slip > 0 -> slip-- :: else fi;
#if defined(COPY) || defined(LIVE)
        if :: since < TTL + 3 && (calm || SINCE_ATTACH) -> since++ :: else fi
#endif
      }
    }
#if defined(LIVE) && defined(STAY)
  :: d_step {                                           /* the last fault: a voter leads, and the others wait for the stay */
      !calm && alive(0) && rep[TRUTH].life[0] == 1 && rep[TRUTH].owner == 1 && rep[TRUTH].entry[1] != NO_ENTRY && lease[0] > 0 &&
        epoch[0] < EPOCHS ->
      calm = 1;
      since = 0
    }
#elif defined(LIVE)
  :: d_step {                                           /* the last fault: the holder is dead, a voter leads, the client waits */
      !calm && phase[1] == DEAD && alive(0) && rep[TRUTH].life[0] == 1 && (want[0] == ASKED || want[0] == UNSENT) && lease[0] > 0 &&
        epoch[0] < EPOCHS && number[0] + (want[0] == UNSENT) < NUMBERS ->       /* and the bounds allow another request */
      calm = 1;
      since = 0
    }
#endif
  od
}


/* ---- states that must never be reached, and states that must be ---- */

#define owns(c) (rep[TRUTH].owner == sid(c) + 1 && rep[TRUTH].entry[sid(c)] == number[c])
#define lives(c) (rep[TRUTH].life[sid(c)] == 1)
#define quiet(c) (phase[c] == ATTACHED_ && role[target[c]] == LEADS && target[c] == leader && live[at(target[c], c)] && \
  len(tail) + len(lag[target[c]]) + len(up[at(target[c], c)]) + len(down[c]) == 0 && freeing[c] == NO_ENTRY)
#ifdef OTHERS
#define CLIENT1(condition) false
#else
#define CLIENT1(condition) (condition)
#endif
#define wanted(c) (want[c] == ASKED || believes(c) || want[c] == KEPT -> number[c] : NO_ENTRY)

/* States that the check must be able to reach: run.sh asks for each with -DREACH=..., and expects the assertion to fail. */
#define handover (believes(1) && tokens[0] == 1 && rep[TRUTH].token == 2)
#define handback (believes(0) && tokens[0] == 2 && number[0] == 2)
#define expiry (rep[TRUTH].life[0] == 2)
#define handover_by_expiry (handover && expiry)
#define cancelled_wait (cancels == 0 && number[0] == 1 && rep[TRUTH].owner == 2 && rep[TRUTH].entry[0] == NO_ENTRY && quiet(0))
#define cancel_crossed (cancels == 0 && number[0] == 1 && rep[TRUTH].owner == 1 && len(down[0]) > 0)
#define second_term (term == 2 && role[leader] == LEADS && live[at(leader, 0)])
#define last_term (term == TERMS && role[leader] == LEADS && live[at(leader, 0)])
#define two_leaders (role[0] == LEADS && role[1] == LEADS)
#define hold_moves (term == 2 && leader == 1 && live[at(1, 0)] && phase[0] == ATTACHED_ && believes(0) && number[0] == 1 && epoch[0] == 2)
#define late_renewal (flying[0] && age[0] == TTL && lease[0] == 0 && renewal[at(target[0], 0)] == 2)
#define stale_expiry (len(tail) > 0 && term == 2 && rep[TRUTH].life[0] == 1 && expiring[at(1 - leader, 0)])
#define served (calm && want[0] == HELD && since == TTL)
#define passed_on (calm && rep[TRUTH].owner == 2 && since == 2 && recall == 2)
#define stay_moves (term == 2 && leader == 1 && live[at(1, 0)] && phase[0] == ATTACHED_ && want[0] == KEPT && epoch[0] == 2)
#define refused_copy (phase[0] == GONE && believes(1))

hidden byte promise1_two_believe, promise3_believer_does_not_own, promise6_something_is_left, copies_believe_too_long, promise3_lease_without_session, promise4_waiter_is_not_served, wanted_state;    /* false: names for what Spin prints */

proctype monitor() {
  do
#ifndef COPY
  :: atomic { believes(0) && believes(1) -> assert(promise1_two_believe) }
  :: atomic { believes(0) && !owns(0) || CLIENT1(believes(1) && !owns(1)) -> assert(promise3_believer_does_not_own) }
  :: atomic { quiet(0) && rep[TRUTH].entry[0] != wanted(0) || CLIENT1(quiet(1) && rep[TRUTH].entry[1] != wanted(1)) ->
      assert(promise6_something_is_left) }
#else
  :: atomic { believes(0) && believes(1) && since >= LEASE && rep[TRUTH].epoch[0] > 1 -> assert(copies_believe_too_long) }
#endif
#ifndef BELIEF_ONLY                                     /* leaves the lemma out, so that the run shows what a bug leads to */
  :: atomic { lease[0] > 0 && !lives(0) || CLIENT1(lease[1] > 0 && !lives(1)) -> assert(promise3_lease_without_session) }
#endif
#if defined(LIVE) && defined(STAY)
  :: atomic { calm && since > TTL + 1 && rep[TRUTH].owner != 2 -> assert(promise4_waiter_is_not_served) }
#elif defined(LIVE)
  :: atomic { calm && since > TTL + 1 && want[0] != HELD && alive(0) && lives(0) -> assert(promise4_waiter_is_not_served) }
#endif
#ifdef REACH
  :: atomic { REACH -> assert(wanted_state) }
#endif
  od
}


init {
  atomic {
    role[0] = LEADS;
    rep[TRUTH].life[0] = 1; rep[TRUTH].life[1] = 1;
    rep[TRUTH].epoch[0] = 1; rep[TRUTH].epoch[1] = 1;
#ifdef COPY
    rep[TRUTH].epoch[1] = 0; rep[TRUTH].life[1] = 0;
    rep[TRUTH].entry[0] = NUMBERS; rep[TRUTH].owner = 1; rep[TRUTH].token = 1;
    number[0] = NUMBERS; number[1] = NUMBERS; want[0] = HELD; want[1] = HELD; tokens[0] = 1; tokens[1] = 1; highest = 1;
#endif
    C = 0;
    do
    :: C < 2 ->
      phase[C] = ATTACHED_; epoch[C] = 1; lease[C] = LEASE;
      attached[at(0, C)] = 1; live[at(0, C)] = 1; due[at(0, C)] = TTL;
#ifdef NO_EXTEND
      due[at(1, C)] = TTL;
#endif
      C++
    :: else -> break
    od;
#ifdef COPY
    attached[at(0, 1)] = 0; live[at(0, 1)] = 0; due[at(0, 1)] = 0;
#endif
#ifdef OPENING
    rep[TRUTH].life[0] = 0; rep[TRUTH].epoch[0] = 0;
    phase[0] = BEGINS; epoch[0] = 0; lease[0] = 0; opens = 2;
    attached[at(0, 0)] = 0; live[at(0, 0)] = 0; due[at(0, 0)] = 0; due[at(1, 0)] = 0;
#endif
#if defined(LIVE) && defined(STAY)
    rep[TRUTH].entry[0] = 1; rep[TRUTH].owner = 1; rep[TRUTH].token = 1; highest = 1; number[0] = 1; want[0] = HELD; tokens[0] = 1;
#elif defined(LIVE)
    rep[TRUTH].entry[1] = 1; rep[TRUTH].owner = 2; rep[TRUTH].token = 1; highest = 1; number[1] = TIMES;
#endif
#ifdef OTHERS
    lease[1] = 0; attached[at(0, 1)] = 0; live[at(0, 1)] = 0;
#endif
    copy_truth(0);
    C = 0;
    run raft(); run applied(0); run applied(1);
    run keeper(0, 0); run keeper(1, 0); run client(0);
#ifdef OTHERS
    run others();
#else
    run client(1);
#endif
#if defined(LIVE) && !defined(STAY) || !defined(OTHERS)
    run keeper(0, 1); run keeper(1, 1);
#endif
#ifndef STILL
    run time();
#endif
    run monitor()
  }
}
