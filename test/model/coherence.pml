/*
 * Model of cache coherence with one key, N instances and one Redis server, as specified in
 * src/cache/coherence/README.md. coherence.test.ts explores all its states with Spin.
 *
 * Every step of a process and of Redis may be delayed indefinitely, so slow connections, frozen processes and
 * a frozen or unreachable Redis need no separate fault. -D selects faults, which occur at most FAULTS times:
 * LOSE (a message), CUT (a connection), RESTART (empty, or with earlier data from an old dump or a stale
 * replica), EVICT (the group state or the member list), KILL, PAUSE (a virtual machine), STOP (a process, whose
 * clock goes on; entries are then fresh without a lease as well, as within redis.disconnectedMaxAge), FAILBACK
 * (the master hangs for at least MEMBERSHIP, is replaced, and returns unchanged), DENY (Redis refuses to publish). Of
 * FAILBACK, HANG is the bit set of instances that may stay connected to the master that hangs, with IN_FLIGHT they renew
 * there meanwhile, and with SET_BACK its clock may be set back by a tick. With LATE, the last LATE instances start at any
 * time. With READER_LOADS, only instances that do not write load. With AUTH, the first writer is an authoritative read of
 * a record that was changed elsewhere. -DNO_... omits a protocol rule, and Spin must then find an old response.
 *
 * The model excludes clocks with different rates, more than 128 members, bans, clusters with several masters,
 * and the expiry of a fence.
 */
#ifndef N
#define N 2
#endif
#ifndef WRITERS
#define WRITERS 1 /* each writes once */
#endif
#ifndef LOADS
#define LOADS 1
#endif
#ifndef FAULTS
#define FAULTS 1
#endif

#ifndef HANG
#define HANG 0
#endif

/* Times in ticks, of which only the order matters: a membership and a wait for leases outlast a lease. */
#define LEASE 2
#define LEASE_WAIT 3
#define MEMBERSHIP 3
#define LATENESS 1 /* maximum age of a renewal when Redis executes it; older renewals are void */
/* A member without a lease regards other members as lapsed so long before the end of their membership. */
#ifdef NO_EARLY_LAPSE
#define EARLY 0
#else
#define EARLY 1
#endif
#define FENCED_ENTRY 3 /* lifetime of a fenced entry in Redis */
#define UNKNOWN (LATENESS + MEMBERSHIP + LEASE_WAIT)
#define NEVER 15 /* value of a stopped timer */

#define NONE 7 /* no version or server run */
#ifndef NUMBERS
#define NUMBERS 7 /* maximum number of messages */
#endif
#define ROOM 5 /* maximum messages in flight to one instance */
#define BIT(i) (1 << (i))
#define DOWN_TO_0(timer) timer = (timer > 0 && timer != NEVER -> timer - 1 : timer)
#define UP_TO(timer, end) timer = (timer < end -> timer + 1 : timer)

mtype = { raise, changed, forget, soften, pong };
mtype = { down, subscribed, entered, joined, linked };
mtype = { idle, raising, fenced, answered, published, awaiting, expelling, away, back, done };

/* The group's data in Redis. An entry is valid only in the server run that stored it. */
typedef GroupState {
  byte ofRun; byte seq; byte floor; byte lastChange; byte fences;
  byte entry; bit isFresh; byte entryRun; byte entryLeft;
  byte era; byte before /* earlier eras, as bits */
};
GroupState state, dump;
#ifdef FAILBACK
/* The first master, which hangs while a replacement is the master. */
GroupState hung;
byte hungMember[N], hungLeased, hungFor;
byte hungRenewal[N] = NEVER; /* age of the renewal that it will execute for an instance that has disconnected */
byte hanging; /* bit set of instances that are still connected to it */
bit isHung, isReturned, isSetBack;
#endif
#ifdef DENY
bit isDenied;
#endif
bit isDumped;
byte wasStarted, delayed, cut; /* bit sets of instances: with unbounded delay, and cut off from Redis */
byte server, newest = 1; /* current server run; highest message number of all runs */
/* Time until each membership is removed, MEMBERSHIP after it has lapsed; NEVER for unlisted instances. */
byte listRun, listAge = LEASE_WAIT, member[N] = NEVER, expelled, leased = BIT(N) - 1, eras = 1;

typedef Instance {
  bit isUp; bit isPaused; mtype link; byte known; byte knownRun; byte era; byte numberRead; byte lease; byte returning; byte pending;
  byte memory; bit isFresh; byte fences; byte watched; /* bit sets of writers: with a fence, and watched until their membership lapses */
  /* Load: 1 started, 2 received from the upstream, 3 stored in memory only so far, 4 read from Redis. */
  byte load; byte loaded; bit isCurrent; bit isAuthCurrent; byte ticketSeq; byte ticketRun;
  /* Renewal: 1 sent, 2 reply received. */
  byte renewal; byte renewalAge; bit isIgnored; bit isPonged; bit isRenewed; bit isAbsent; bit isLate; byte lapsedNow; bit isVouched
#ifdef FAILBACK
  ; byte silence; /* ticks without an answer of Redis */
  byte listWait; /* time for which the member list may lack members with a lease of a different master */
  bit isLapsedListed, isLapsedLost /* whether the list has lapsed members; whether a lost list had */
#endif
#ifdef STOP
  ; bit isStopped; byte sinceBeat; bit isFromBeforePause, isLoadFromBeforePause /* the entry in memory, and the load */
#endif
};
Instance at[N];
chan sub[N] = [ROOM] of { mtype, byte, byte, byte }; /* kind, number, sender, call */

typedef Write {
  mtype step; byte version; bit isRaised; byte sinceRenewal;
  byte ticketSeq; byte ticketRun; byte call; bit isAgain; byte others; byte acked; byte renewed; byte gone; bit isUnread; byte wait; byte listWait
#ifdef FAILBACK
  ; byte ofRun /* server run of the publication */
#endif
};
Write write[WRITERS];
byte upstream, acknowledged, loads, faults = FAULTS;

#ifdef STOP
#define IS_STOPPED(i) (at[i].isStopped)
#define HAS_BEATEN(i) (at[i].sinceBeat == 0)
#else
#define IS_STOPPED(i) false
#define HAS_BEATEN(i) true
#endif
#define RUNS(i) (at[i].isUp && !at[i].isPaused && !IS_STOPPED(i))
#define IS_CONNECTED(i) (at[i].link != down)
#ifdef FAILBACK
#define HANGS(i) (hanging & BIT(i))
#ifdef IN_FLIGHT
#define MAY_SEND(i) true
#else
#define MAY_SEND(i) (!HANGS(i))
#endif
#else
#define HANGS(i) false
#define MAY_SEND(i) true
#endif
#ifdef DENY
#define MAY_PUBLISH (!isDenied)
#else
#define MAY_PUBLISH true
#endif
#ifdef NO_RIGHT
#define MAY_RENEW true
#else
#define MAY_RENEW MAY_PUBLISH
#endif
#define CAN_PUBLISH(i) (IS_CONNECTED(i) && HAS_ENTERED(i) && !HANGS(i) && MAY_PUBLISH)
#define IS_LISTED(i) (member[i] != NEVER)
/* Whether member i has lapsed from the point of view of member k. */
#define HAS_LAPSED(i, k) (IS_LISTED(i) && (member[i] <= MEMBERSHIP + (at[k].lease == 0 -> EARLY : 0) || (expelled & BIT(i))))
#ifdef NO_RUN
#define IS_OF_RUN(r) (r != NONE)
#else
#define IS_OF_RUN(r) (r == server)
#endif
#define IS_READABLE (state.entry != NONE && state.isFresh && state.entryLeft > 0 && IS_OF_RUN(state.ofRun) && IS_OF_RUN(state.entryRun))
#if N == 2
#define HAS_ROOM (newest < NUMBERS && len(sub[0]) < ROOM - 1 && len(sub[1]) < ROOM - 1)
#else
#define HAS_ROOM (newest < NUMBERS && len(sub[0]) < ROOM - 1 && len(sub[1]) < ROOM - 1 && len(sub[2]) < ROOM - 1)
#endif
#ifdef LOSE
#define MAY_LOSE (faults > 0)
#else
#define MAY_LOSE false
#endif

#ifdef LATE
#define STARTS_LATE LATE
#else
#define STARTS_LATE 0
#endif
#ifdef READER_LOADS
#define MAY_LOAD(i) (i >= WRITERS)
#else
#define MAY_LOAD(i) true
#endif
#define STEP(i, s) (i < WRITERS && write[i].step == s)
#ifdef AUTH
#define IS_AUTH(i) (i == 0)
#else
#define IS_AUTH(i) false
#endif

inline select_instance(i) { if :: i = 0 :: i = 1 :: N > 2 -> i = N - 1 fi }

/* Redis may still execute an in-flight renewal after the connection is restored. */
inline cut_off(i) {
  if
  :: !(cut & BIT(i)) && at[i].isUp ->
     disconnect(i); cut = cut | BIT(i);
     if
     :: at[i].renewal == 0 -> at[i].renewal = 1; at[i].isIgnored = 1; if :: i < WRITERS -> write[i].sinceRenewal = 0 :: else fi
     :: true
     fi
  :: else
  fi
}

inline copy_state(to, from) {
  to.ofRun = from.ofRun; to.seq = from.seq; to.floor = from.floor; to.lastChange = from.lastChange; to.fences = from.fences;
  to.entry = from.entry; to.isFresh = from.isFresh; to.entryRun = from.entryRun; to.entryLeft = from.entryLeft;
  to.era = from.era; to.before = from.before
}

#define FOR_EACH(...) j = 0; do :: j < N -> __VA_ARGS__; j++ :: else -> break od; j = 0

/* ---- Redis, which executes scripts atomically ---- */

inline open_state() {
  if
  :: IS_OF_RUN(state.ofRun)
  :: else ->
     newest++; state.ofRun = server; state.seq = newest; state.floor = newest; state.lastChange = 0; state.fences = 0; state.era = 0; state.before = 0
  fi
}

inline publish(what, who, number) {
  open_state();
  state.seq++; state.lastChange = state.seq; newest = (state.seq > newest -> state.seq : newest);
  if
  :: what == raise ->
     state.fences = state.fences | BIT(who);
#ifndef NO_FENCED_END
     state.entryLeft = (state.entryLeft > FENCED_ENTRY -> FENCED_ENTRY : state.entryLeft)
#endif
  :: what == changed -> state.fences = state.fences & ~BIT(who); state.entry = NONE
  :: what == forget -> state.entry = NONE
  :: what == soften -> state.isFresh = 0
  fi;
  lost = NONE;
  if
  :: MAY_LOSE -> faults--; isLost = (what == raise); if :: lost = 0 :: lost = 1 :: lost = N - 1 fi
  :: true
  fi;
  FOR_EACH(if :: at[j].isUp && IS_CONNECTED(j) && !HANGS(j) && j != lost -> sub[j]!what,state.seq,who,number :: else fi);
  lost = 0
}

inline renew(i, joins) {
  if
  :: listRun == server
  :: else ->
     listRun = server; listAge = 0; expelled = 0; FOR_EACH(member[j] = NEVER);
#ifdef FAILBACK
#ifndef NO_LOST_LAPSED
     FOR_EACH(at[j].isLapsedLost = at[j].isLapsedLost || at[j].isLapsedListed)
#endif
#endif
  fi;
  at[i].isAbsent = !IS_LISTED(i) || (expelled & BIT(i));
  if
  :: at[i].isAbsent && !joins
  :: else ->
     member[i] = 2 * MEMBERSHIP; expelled = expelled & ~BIT(i); at[i].lapsedNow = 0;
#ifdef FAILBACK
     leased = (at[i].lease > 0 -> leased | BIT(i) : leased & ~BIT(i)); at[i].isVouched = 0;
     FOR_EACH(if :: j != i && IS_LISTED(j) && !HAS_LAPSED(j, i) && (leased & BIT(j)) -> at[i].isVouched = 1 :: else fi);
#endif
     if :: at[i].lease > 0 -> FOR_EACH(if :: member[j] == 0 -> member[j] = NEVER :: else fi) :: else fi;
     FOR_EACH(if :: j < WRITERS && write[j].step == awaiting -> write[j].renewed = write[j].renewed | BIT(i) :: else fi);
     FOR_EACH(if :: HAS_LAPSED(j, i) -> at[i].lapsedNow = at[i].lapsedNow | BIT(j) :: else fi);
#ifdef FAILBACK
     at[i].isLapsedListed = (at[i].lease == 0 && at[i].lapsedNow);
     at[i].isLapsedLost = (at[i].lease == 0 && at[i].isLapsedLost)
#endif
  fi
}

/* An era is an uninterrupted period with the same master. Data from earlier eras is not used. */
#ifdef FAILBACK
#define HAS_ENTERED(i) (at[i].knownRun == server)
inline begin_era(i) {
  state.before = state.before | BIT(state.era); eras++; state.era = eras; publish(soften, i, 0)
}
/* Members that are missing from the list may have a lease of a different master. */
inline distrust_list(i) {
#ifndef NO_LIST_DISTRUST
  if :: i < WRITERS -> at[i].listWait = LEASE_WAIT :: else fi
#else
  skip
#endif
}
inline enter_era(i) {
  at[i].silence = 0;
  if
  :: !state.era -> eras++; state.era = eras
#ifndef NO_ERA
  :: state.era && at[i].era && at[i].era != state.era && !(state.before & BIT(at[i].era)) -> begin_era(i)
#endif
  :: else
  fi;
  if :: at[i].era && at[i].era != state.era -> state.before = state.before | BIT(at[i].era) :: else fi;
  if :: at[i].era && (at[i].era != state.era || !HAS_ENTERED(i)) -> distrust_list(i) :: else fi;
  at[i].era = state.era;
  if :: HAS_ENTERED(i) :: else -> distrust(i); at[i].knownRun = server fi
}
#else
#define HAS_ENTERED(i) true
inline enter_era(i) { skip }
#endif

/* ---- The link of an instance ---- */

/* Ends the lease. The instance may then miss messages, because writers do not wait for it. */
inline end_lease(i) {
  at[i].lease = 0;
  start_over(i)
}
inline start_over(i) {
#ifdef NO_REREAD
  skip
#else
  if :: at[i].link == entered || at[i].link == joined || at[i].link == linked -> at[i].link = subscribed; at[i].numberRead = 0 :: else fi
#ifdef FAILBACK
  ; at[i].knownRun = NONE
#endif
#endif
}

inline void_loads(i) { at[i].isCurrent = 0; at[i].isAuthCurrent = 0 }
inline distrust(i) { at[i].isFresh = 0; void_loads(i) }
inline drop(i) { at[i].memory = NONE; at[i].isFresh = 0; void_loads(i) }

inline disconnect(i) {
  at[i].link = down; at[i].isPonged = 0; at[i].numberRead = 0;
  if
  :: at[i].renewal == 1 -> at[i].isIgnored = 1 /* Redis may execute it later */
  :: else -> at[i].renewal = 0
  fi;
  do :: nempty(sub[i]) -> sub[i]?_,_,_,_ :: empty(sub[i]) -> break od
}

inline receive(i) {
  sub[i]?kind,number,from,call;
  if
  :: kind == pong -> at[i].isPonged = !at[i].isIgnored
  :: else ->
     if
     :: number > at[i].known ->
        if :: number != at[i].known + 1 -> distrust(i) :: else fi;
        at[i].known = number
     :: else
     fi;
     if
     :: from == i
     :: else ->
        if
        :: kind == raise ->
           at[i].fences = at[i].fences | BIT(from); at[i].watched = at[i].watched | BIT(from); void_loads(i)
        :: kind == changed -> at[i].fences = at[i].fences & ~BIT(from); at[i].watched = at[i].watched & ~BIT(from); drop(i)
        :: kind == forget -> drop(i)
        :: kind == soften -> distrust(i)
        fi;
        if :: call && call == write[from].call -> write[from].acked = write[from].acked | BIT(i) :: else fi
     fi
  fi;
  kind = 0; number = 0; from = 0; call = 0
}

inline report(i) {
  if
  :: at[i].pending == 2 -> publish(forget, i, 0); drop(i)
  :: at[i].pending == 1 -> publish(soften, i, 0); distrust(i)
  fi;
  at[i].pending = 0
}
#ifdef NO_REPORT
#define HAS_REPORTED(i) true
#else
#define HAS_REPORTED(i) (at[i].pending == 0)
#endif

#ifdef FAILBACK
#define ARE_MISSING(i) (at[i].lapsedNow || at[i].isLapsedLost)
#else
#define ARE_MISSING(i) (at[i].lapsedNow)
#endif

inline end_renewal(i) {
  if
  :: at[i].isAbsent -> at[i].lease = 0; distrust(i); disconnect(i)
  :: at[i].isLate && !at[i].isAbsent
  :: !at[i].isLate && !at[i].isAbsent ->
#ifndef NO_SOFTEN
     if
     :: at[i].watched & at[i].lapsedNow ->
        distrust(i); at[i].watched = at[i].watched & ~at[i].lapsedNow; at[i].pending = (at[i].pending == 2 -> 2 : 1)
     :: else
     fi;
#endif
     if
     :: at[i].lease == 0 && at[i].link == linked && at[i].returning == NEVER ->
        at[i].returning = MEMBERSHIP;
        if :: at[i].fences -> distrust(i) :: else fi
     :: else
     fi;
     if
     :: at[i].lease == 0 && at[i].link != linked /* reads the message numbers first */
#ifndef NO_WAIT_FOR_LAPSED
     :: at[i].lease == 0 && at[i].link == linked && ARE_MISSING(i) && at[i].returning > 0
#endif
     :: else ->
#ifdef FAILBACK
#ifndef NO_ERA_OF_LOST
        /* The lapsed members may have been linked to a different master meanwhile. */
        if
        :: at[i].lease == 0 && ARE_MISSING(i) && (at[i].isLapsedLost || !at[i].isVouched) ->
           begin_era(i); at[i].era = state.era; at[i].known = state.seq; distrust(i); distrust_list(i)
        :: else
        fi;
#endif
#endif
        at[i].returning = NEVER;
        if :: at[i].renewalAge < LEASE -> at[i].lease = LEASE - at[i].renewalAge :: else -> end_lease(i) fi
     fi;
     if :: i < WRITERS && write[i].step == away -> write[i].step = back :: else fi
  fi;
  at[i].renewal = 0; at[i].renewalAge = 0; at[i].isPonged = 0; at[i].isRenewed = 1;
  at[i].isAbsent = 0; at[i].isLate = 0; at[i].lapsedNow = 0; at[i].isVouched = 0
}

/* ---- A load ---- */

inline begin_load(i) {
  loads++; at[i].isCurrent = 1; at[i].load = 1;
#ifdef STOP
  at[i].isLoadFromBeforePause = 0;
#endif
  if
  :: at[i].lease == 0 || !HAS_ENTERED(i)
  :: else ->
     if
     :: IS_OF_RUN(state.ofRun) -> at[i].ticketSeq = state.seq; at[i].ticketRun = state.ofRun
     :: else
     fi;
     if
     :: IS_READABLE && !state.fences -> if :: at[i].loaded = state.entry; at[i].load = 4 :: true /* refresh-ahead */ fi
#ifndef NO_FENCED_LOAD
     :: state.fences -> at[i].isCurrent = 0 /* Redis would reject the entry, and memory waits for Redis */
#endif
     :: else
     fi
  fi
}

inline end_load(i) { at[i].load = 0; at[i].loaded = 0; at[i].isCurrent = 0; at[i].ticketSeq = 0; at[i].ticketRun = 0 }

#ifdef NO_LINKED_KEEP
#define IS_LINKED_LOAD(i) 1
#else
#define IS_LINKED_LOAD(i) (at[i].ticketSeq > 0) /* without Redis, entries are valid for redis.disconnectedMaxAge, here 0 */
#endif

inline keep(i) {
  if
  :: at[i].isCurrent && !at[i].fences ->
#ifdef STOP
     at[i].isFromBeforePause = at[i].isLoadFromBeforePause;
#endif
     at[i].memory = at[i].loaded; at[i].isFresh = IS_LINKED_LOAD(i);
     if :: at[i].load == 2 && at[i].ticketSeq -> at[i].load = 3 :: else -> end_load(i) fi
  :: else -> end_load(i)
  fi
}

inline store(i) {
  if
#ifdef NO_MARK
  :: !state.fences ->
#else
  :: state.ofRun == at[i].ticketRun && state.floor <= at[i].ticketSeq && state.lastChange <= at[i].ticketSeq && !state.fences ->
#endif
     state.entry = at[i].loaded; state.isFresh = 1; state.entryRun = at[i].ticketRun; state.entryLeft = NEVER
  :: else -> drop(i)
  fi;
  end_load(i)
}

/* ---- A write ---- */

inline not_published(i) { drop(i); at[i].fences = at[i].fences & ~BIT(i); at[i].pending = 2; write[i].step = away }

inline publish_changed(i) {
  write[i].call++; write[i].acked = 0; write[i].others = 0;
#ifdef FAILBACK
  write[i].ofRun = server;
#endif
  publish(changed, i, write[i].call); drop(i); at[i].fences = at[i].fences & ~BIT(i); write[i].step = published
}

inline read_members(i) {
  FOR_EACH(if :: j != i && IS_LISTED(j) -> write[i].others = write[i].others | BIT(j) :: else fi);
#ifndef NO_LIST_AGE
  write[i].listWait = (listRun != server -> LEASE_WAIT : LEASE_WAIT - listAge);
#ifdef FAILBACK
  write[i].listWait = (write[i].listWait > at[i].listWait -> write[i].listWait : at[i].listWait);
#endif
#endif
#ifndef NO_WAIT_AFTER_READ
  write[i].wait = LEASE_WAIT;
#endif
  write[i].gone = expelled; write[i].step = awaiting
}

/* An authoritative load takes a ticket, stores its record, and voids every older load. */
inline begin_authoritative(i) {
  at[i].isAuthCurrent = 1; write[i].step = fenced;
  if
  :: at[i].lease > 0 && IS_OF_RUN(state.ofRun) && HAS_ENTERED(i) -> write[i].ticketSeq = state.seq; write[i].ticketRun = state.ofRun
  :: else
  fi
}

inline publish_replaced(i) {
  open_state();
  at[i].isAuthCurrent = at[i].isAuthCurrent && !at[i].fences && write[i].ticketSeq && write[i].ticketRun == state.ofRun &&
    state.floor <= write[i].ticketSeq && state.lastChange <= write[i].ticketSeq && !state.fences;
  if :: at[i].isAuthCurrent :: else -> drop(i) fi;
  write[i].call++; write[i].acked = 0; write[i].others = 0; write[i].ticketSeq = state.lastChange;
  publish(forget, i, write[i].call); write[i].step = published;
  if
  :: at[i].isAuthCurrent ->
     at[i].memory = write[i].version; at[i].isFresh = 1; void_loads(i);
     state.entry = write[i].version; state.isFresh = 1; state.entryRun = state.ofRun; state.entryLeft = NEVER;
#ifdef NO_REPLACED_CHANGE
     state.lastChange = write[i].ticketSeq
#endif
  :: else
  fi;
  write[i].ticketSeq = 0; write[i].ticketRun = 0
}

#ifdef NO_READ
#define IS_READ(i) true
#else
#define IS_READ(i) (!write[i].isUnread)
#endif
#define MISSING(i) (write[i].others & ~write[i].acked)
#ifdef NO_BARRIER
#define HAS_WAITED(i) true
#else
#define HAS_WAITED(i) (!write[i].listWait && (!write[i].wait || (!write[i].isUnread && !MISSING(i))))
#endif

inline acknowledge(i) {
  if :: write[i].version > acknowledged -> acknowledged = write[i].version :: else fi;
  end_write(i)
}

#if defined(FAILBACK) && !defined(NO_CONFIRM)
#define IS_CONFIRMED(i) (CAN_PUBLISH(i) && write[i].ofRun == server)
#else
#define IS_CONFIRMED(i) true
#endif
/* The barrier has not waited for members of a master that has replaced the one of the publication. */
inline confirm(i) { if :: IS_CONFIRMED(i) -> acknowledge(i) :: else -> not_published(i) fi }

inline end_write(i) {
  write[i].step = done; write[i].version = 0; write[i].isRaised = 0; write[i].sinceRenewal = 0; write[i].call = 0;
  write[i].ticketSeq = 0; write[i].ticketRun = 0; write[i].isAgain = 0; write[i].others = 0; write[i].acked = 0; write[i].renewed = 0; write[i].isUnread = 0;
  write[i].wait = 0; write[i].listWait = 0
#ifdef FAILBACK
  ; write[i].ofRun = 0
#endif
}

/* Members that have renewed since the list was read, but have not acknowledged, have missed the message. */
inline end_of_round(i) {
  write[i].others = MISSING(i) & write[i].renewed & ~write[i].gone; write[i].renewed = 0; write[i].gone = 0; write[i].acked = 0;
  if
#ifndef NO_READ
  :: write[i].isUnread -> write[i].isUnread = 0; not_published(i)
#endif
#ifdef NO_EXPEL
  :: true -> acknowledge(i)
#else
  :: IS_READ(i) && !write[i].others -> confirm(i)
  :: IS_READ(i) && write[i].others && !write[i].isAgain && CAN_PUBLISH(i) -> write[i].isAgain = 1; publish_changed(i)
  :: IS_READ(i) && write[i].others && write[i].isAgain && CAN_PUBLISH(i) ->
     expelled = expelled | write[i].others; write[i].wait = LEASE_WAIT; write[i].step = expelling
  :: IS_READ(i) && write[i].others && !CAN_PUBLISH(i) -> not_published(i)
#endif
  fi
}

/* ---- Processes ---- */

#ifdef NO_LEASED_RAISE
#define LEASED_RAISE(i) true
#else
#define LEASED_RAISE(i) (at[i].lease > 0)
#endif
#ifdef FREEZE
#define ALL_ARE_CUT_OFF (cut == BIT(N) - 1)
#elif defined(DENY)
#define ALL_ARE_CUT_OFF (isDenied)
#else
#define ALL_ARE_CUT_OFF false
#endif
/* Whether a command may time out. */
#define GIVES_UP(i) ((delayed & BIT(i)) || !CAN_PUBLISH(i))

proctype Process(byte i) {
  byte j, lost, number, from, call; bit isLost; mtype kind;
  do
  :: d_step { RUNS(i) && nempty(sub[i]) -> receive(i) }
#ifdef STOP
  :: d_step { RUNS(i) && !HAS_BEATEN(i) ->
       if :: at[i].sinceBeat > 1 -> at[i].isFromBeforePause = 1; at[i].isLoadFromBeforePause = 1 :: else fi;
       at[i].sinceBeat = 0 }
#endif
  /* Reconnect: subscribe, enter the era, report and join, read the message number, report, renew. */
  :: atomic { RUNS(i) && at[i].link == down && !(cut & BIT(i)) -> at[i].link = subscribed }
  :: atomic { RUNS(i) && at[i].link == subscribed && !HANGS(i) && HAS_ROOM -> open_state(); enter_era(i); at[i].link = entered }
  :: atomic { RUNS(i) && CAN_PUBLISH(i) && at[i].pending && HAS_ROOM -> report(i) }
  :: atomic { RUNS(i) && at[i].link == entered && at[i].lease > 0 -> at[i].link = joined }
  :: atomic { RUNS(i) && at[i].link == entered && at[i].lease == 0 && !HANGS(i) && MAY_RENEW && HAS_REPORTED(i) && !at[i].renewal ->
       renew(i, 1); at[i].isAbsent = 0; at[i].lapsedNow = 0; at[i].isVouched = 0;
       if :: i < WRITERS -> write[i].sinceRenewal = 0 :: else fi;
       at[i].link = joined }
  :: d_step { RUNS(i) && at[i].link == joined && !HANGS(i) && !at[i].numberRead -> open_state(); at[i].numberRead = state.seq }
  :: d_step { RUNS(i) && at[i].link == joined && at[i].numberRead ->
#ifndef NO_NUMBERS
       if :: at[i].numberRead != at[i].known -> distrust(i) :: else fi;
#endif
       at[i].known = at[i].numberRead; at[i].numberRead = 0; at[i].link = linked }
  :: d_step { RUNS(i) && at[i].link == linked && HAS_REPORTED(i) && !at[i].renewal && !at[i].isRenewed && MAY_RENEW && MAY_SEND(i) && ( (delayed & BIT(i)) && nfull(sub[i]) || !(delayed & BIT(i)) && empty(sub[i])) ->
       if :: i < WRITERS -> write[i].sinceRenewal = 0 :: else fi;
       if
       :: HANGS(i) -> at[i].renewal = 1
       :: !HANGS(i) && (delayed & BIT(i)) -> at[i].renewal = 1; sub[i]!pong,0,0,0
       :: else -> renew(i, 0); end_renewal(i)
       fi }
#ifdef IN_FLIGHT
  :: d_step { RUNS(i) && HANGS(i) && at[i].renewal == 1 && at[i].renewalAge >= LEASE ->
       at[i].renewalAge = 0; if :: i < WRITERS -> write[i].sinceRenewal = 0 :: else fi }
#endif
  :: d_step { RUNS(i) && at[i].renewal == 2 && at[i].isPonged -> end_renewal(i) }
  /* Loads */
  :: atomic { RUNS(i) && !at[i].load && loads < LOADS && MAY_LOAD(i) && write[0].step != idle -> begin_load(i) }
  :: atomic { RUNS(i) && at[i].load == 1 -> at[i].loaded = upstream; at[i].load = 2 }
  :: d_step { RUNS(i) && (at[i].load == 2 || at[i].load == 4) -> keep(i) }
  :: atomic { RUNS(i) && at[i].load == 3 -> if :: store(i) :: GIVES_UP(i) -> end_load(i) /* Redis is unreachable */ fi }
  /* The write. Redis may execute a command whose reply is lost. */
  :: d_step { RUNS(i) && STEP(i, idle) && IS_AUTH(i) -> begin_authoritative(i) }
  :: d_step { RUNS(i) && STEP(i, idle) && !IS_AUTH(i) ->
       at[i].fences = at[i].fences | BIT(i); void_loads(i);
       write[i].step = (LEASED_RAISE(i) -> raising : fenced) }
  :: atomic { RUNS(i) && STEP(i, raising) && CAN_PUBLISH(i) && HAS_ROOM ->
       publish(raise, i, 0); if :: write[i].isRaised = LEASED_RAISE(i) && !isLost :: GIVES_UP(i) fi; isLost = 0; write[i].step = fenced }
  :: atomic { RUNS(i) && STEP(i, raising) && GIVES_UP(i) -> write[i].step = fenced }
  :: atomic { RUNS(i) && STEP(i, fenced) -> upstream++; write[i].version = upstream; write[i].step = answered }
  :: atomic { RUNS(i) && (STEP(i, answered) || STEP(i, back)) && CAN_PUBLISH(i) && HAS_ROOM ->
       if
       :: IS_AUTH(i) && STEP(i, answered) -> publish_replaced(i)
       :: !IS_AUTH(i) || STEP(i, back) -> publish_changed(i)
       :: GIVES_UP(i) -> publish(changed, i, 0); not_published(i)
       fi }
  :: atomic { RUNS(i) && (STEP(i, answered) || STEP(i, back)) && GIVES_UP(i) -> not_published(i) }
  :: d_step { RUNS(i) && STEP(i, published) && CAN_PUBLISH(i) -> read_members(i) }
  :: atomic { RUNS(i) && STEP(i, published) && GIVES_UP(i) -> write[i].isUnread = 1; write[i].wait = LEASE_WAIT; write[i].step = awaiting }
  :: atomic { RUNS(i) && STEP(i, awaiting) && HAS_WAITED(i) && HAS_ROOM -> end_of_round(i) }
  :: atomic { RUNS(i) && STEP(i, expelling) && !write[i].wait -> confirm(i) }
  /* Acknowledges without Redis if all others know the fence or all are cut off. Otherwise the exception for
   * `redis.disconnectedWrites: wait` in the README applies. */
  :: atomic { RUNS(i) && STEP(i, away) && write[i].sinceRenewal == UNKNOWN ->
       if :: write[i].isRaised || ALL_ARE_CUT_OFF -> acknowledge(i) :: else -> end_write(i) fi }
  /* Redis executes a renewal, even if the process no longer waits for it. */
  :: d_step { at[i].renewal == 1 && !(cut & BIT(i)) && !HANGS(i) ->
#ifdef NO_LATENESS
       renew(i, 0);
#else
       if :: at[i].renewalAge > LATENESS -> at[i].isLate = 1 :: else -> renew(i, 0) fi;
#endif
       if
       :: at[i].isIgnored ->
          at[i].isIgnored = 0; at[i].renewal = 0; at[i].renewalAge = 0;
          at[i].isAbsent = 0; at[i].isLate = 0; at[i].lapsedNow = 0; at[i].isVouched = 0
       :: else -> at[i].renewal = 2
       fi }
  od
}

/* Time advances after all instances without a delaying fault have received their messages and renewed. */
#define IS_PROMPT(i) (!RUNS(i) || ((delayed | cut) & BIT(i)) || HANGS(i) || (empty(sub[i]) && (at[i].isRenewed || !MAY_PUBLISH) && HAS_BEATEN(i)))

proctype Clock() {
  byte i;
  do
  :: d_step { IS_PROMPT(0) && IS_PROMPT(1) && IS_PROMPT(N - 1) ->
       do
       :: i < N ->
          at[i].isRenewed = 0;
#ifdef STOP
          UP_TO(at[i].sinceBeat, LEASE_WAIT);
#endif
          DOWN_TO_0(member[i]);
#ifdef FAILBACK
          DOWN_TO_0(hungMember[i]); hungRenewal[i] = (hungRenewal[i] < LATENESS + 1 -> hungRenewal[i] + 1 : NEVER);
          if :: at[i].renewal -> UP_TO(at[i].renewalAge, LEASE_WAIT) :: else fi;
          DOWN_TO_0(at[i].listWait);
          if
          :: HANGS(i) && at[i].lease == 0 && at[i].knownRun != NONE ->
             UP_TO(at[i].silence, LEASE);
#ifndef NO_SILENCE
             if :: at[i].silence == LEASE -> at[i].silence = 0; start_over(i) :: else fi
#endif
          :: else -> at[i].silence = 0
          fi;
#else
          if :: at[i].renewal -> UP_TO(at[i].renewalAge, LEASE) :: else fi;
#endif
          if
          :: RUNS(i) || IS_STOPPED(i) ->
             DOWN_TO_0(at[i].returning);
             if :: at[i].lease == 1 -> end_lease(i) :: else -> DOWN_TO_0(at[i].lease) fi;
             if
             :: i < WRITERS && write[i].step != idle && write[i].step != done ->
                UP_TO(write[i].sinceRenewal, UNKNOWN); DOWN_TO_0(write[i].wait); DOWN_TO_0(write[i].listWait)
             :: else
             fi
          :: else
          fi;
          i++
       :: else -> break
       od;
       i = 0; UP_TO(listAge, LEASE_WAIT); DOWN_TO_0(state.entryLeft);
#ifdef FAILBACK
       DOWN_TO_0(hung.entryLeft);
       if :: isHung && !isReturned -> UP_TO(hungFor, MEMBERSHIP) :: else fi
#endif
     }
  od
}

inline lose_redis(i) {
  disconnect(i); at[i].renewal = 0; at[i].renewalAge = 0; at[i].isIgnored = 0; at[i].lapsedNow = 0; at[i].isVouched = 0;
  at[i].isAbsent = 0; at[i].isLate = 0
}

/* An instance that joins only after a former master has returned does not write: see the exceptions in the README. */
#ifdef FAILBACK
#define CAN_START(i) ((i) >= WRITERS || !isReturned)
inline leave_hung(i) {
  if :: at[i].renewal == 1 -> hungRenewal[i] = at[i].renewalAge :: else fi;
  lose_redis(i); at[i].silence = 0; hanging = hanging & ~BIT(i)
}
#else
#define CAN_START(i) true
#endif

proctype Faults() {
  byte i, j;
  do
  :: false
#ifdef LATE
  :: atomic { wasStarted != BIT(N) - BIT(N - LATE) -> select_instance(i);
       if
       :: i >= N - LATE && !(wasStarted & BIT(i)) && CAN_START(i) -> at[i].isUp = 1; wasStarted = wasStarted | BIT(i)
       :: else
       fi;
       i = 0 }
#endif
#ifdef DELAY
  :: atomic { faults > 0 -> faults--; if :: delayed = delayed | 1 :: delayed = delayed | 2 :: delayed = delayed | BIT(N - 1) fi }
#endif
#ifdef FREEZE
  :: atomic { faults > 0 -> faults--; do :: i < N -> cut_off(i); i++ :: else -> break od; i = 0 }
  :: cut -> cut = 0
#endif
#ifdef CUT
  :: atomic { faults > 0 -> faults--; select_instance(i); cut_off(i); i = 0 }
  :: cut -> atomic { select_instance(i); cut = cut & ~BIT(i); i = 0 }
#endif
#ifdef KILL
  :: atomic { faults > 0 -> select_instance(i);
       if
       :: at[i].isUp ->
          faults--; disconnect(i); drop(i); at[i].isUp = 0; at[i].lease = 0; at[i].fences = 0; at[i].pending = 0;
          at[i].watched = 0; at[i].known = 0; at[i].era = 0; at[i].knownRun = NONE; at[i].returning = NEVER; end_load(i);
          if :: i < WRITERS -> end_write(i) :: else fi
       :: else
       fi;
       i = 0 }
#endif
#ifdef PAUSE
  :: atomic { faults > 0 -> select_instance(i); if :: RUNS(i) -> at[i].isPaused = 1; faults-- :: else fi; i = 0 }
  :: atomic { true -> select_instance(i);
       if
       :: at[i].isPaused ->
          at[i].isPaused = 0;
#ifndef NO_CLOCK_SHIFT
          end_lease(i); if :: at[i].renewal -> at[i].renewalAge = LEASE :: else fi
#endif
       :: else
       fi;
       i = 0 }
#endif
#ifdef STOP
  :: atomic { faults > 0 -> select_instance(i); if :: RUNS(i) -> at[i].isStopped = 1; faults-- :: else fi; i = 0 }
  :: atomic { true -> select_instance(i); at[i].isStopped = 0; i = 0 }
#endif
#ifdef RESTART
#ifdef REPLICA
  :: atomic { !isDumped -> isDumped = 1; copy_state(dump, state) }
#endif
  :: atomic { faults > 0 ->
       faults--; server++;
       if :: copy_state(state, dump) :: state.ofRun = NONE; state.entry = NONE fi;
       i = 0;
       do :: i < N -> lose_redis(i); i++ :: else -> break od;
       i = 0 }
#endif
#ifdef FAILBACK
  :: atomic { faults > 0 && !isHung ->
       faults--; isHung = 1; server++;
       copy_state(hung, state); state.ofRun = NONE; state.entry = NONE;
       hungLeased = leased; leased = 0;
       i = 0;
       do
       :: i < N ->
          hungMember[i] = member[i];
          if :: (HANG & BIT(i)) && IS_CONNECTED(i) && at[i].era -> hanging = hanging | BIT(i) :: else -> lose_redis(i) fi;
          i++
       :: else -> break
       od;
       i = 0 }
  :: atomic { hanging && !isReturned -> select_instance(i); if :: HANGS(i) -> leave_hung(i) :: else fi; i = 0 }
  :: atomic { isHung && !isReturned && hungFor == MEMBERSHIP ->
       isReturned = 1; server--; hungFor = 0;
#ifdef SET_BACK
       if :: isSetBack = 1 :: true fi;
#endif
       copy_state(state, hung); copy_state(hung, dump); listRun = server; listAge = LEASE_WAIT; leased = hungLeased; hungLeased = 0;
       i = 0;
       do
       :: i < N ->
          member[i] = hungMember[i]; hungMember[i] = NEVER;
          if :: IS_LISTED(i) && isSetBack -> UP_TO(member[i], 2 * MEMBERSHIP) :: else fi;
          if
          :: hungRenewal[i] <= LATENESS + isSetBack && IS_LISTED(i) -> member[i] = 2 * MEMBERSHIP
          :: else
          fi;
          hungRenewal[i] = NEVER;
          i++
       :: else -> break
       od;
       i = 0;
       do
       :: i < N ->
          if
          :: HANGS(i) && at[i].renewal == 1 ->
             if :: at[i].renewalAge > LATENESS + isSetBack -> at[i].isLate = 1 :: else -> renew(i, 0) fi;
             at[i].renewal = 2; sub[i]!pong,0,0,0
          :: HANGS(i) && at[i].renewal != 1
          :: !HANGS(i) -> lose_redis(i)
          fi;
          i++
       :: else -> break
       od;
       hanging = 0; isSetBack = 0; i = 0 }
#endif
#ifdef DENY
  :: atomic { faults > 0 -> faults--; isDenied = 1 }
  :: isDenied -> isDenied = 0
#endif
#ifdef EVICT
  :: atomic { faults > 0 -> faults--; if :: state.ofRun = NONE :: listRun = NONE fi }
#endif
  od
}

/* Whether entries in memory are fresh without a lease: a pause is noticed by the clock, before the next beat. */
#ifndef STOP
#define IS_FRESH_WITHOUT_LEASE(i) false
#elif defined(NO_PAUSE)
#define IS_FRESH_WITHOUT_LEASE(i) true
#elif defined(NO_PAUSE_CLOCK)
#define IS_FRESH_WITHOUT_LEASE(i) (!at[i].isFromBeforePause)
#else
#define IS_FRESH_WITHOUT_LEASE(i) (!at[i].isFromBeforePause && at[i].sinceBeat <= 1)
#endif
#define IS_OLD(i) (RUNS(i) && (MEMORY_IS_OLD(i) && (at[i].lease > 0 || IS_FRESH_WITHOUT_LEASE(i)) || at[i].lease > 0 && HAS_ENTERED(i) && IS_READABLE && state.entry < acknowledged))
#define MEMORY_IS_OLD(i) (at[i].memory != NONE && at[i].isFresh && at[i].memory < acknowledged)

/* The theorem: no instance serves as fresh a record older than an acknowledged write. */
proctype Theorem() {
#if N == 3
  atomic { IS_OLD(0) || IS_OLD(1) || IS_OLD(2) -> assert(false) }
#else
  atomic { IS_OLD(0) || IS_OLD(1) -> assert(false) }
#endif
}

init {
  byte i;
  atomic {
    state.ofRun = 0; state.era = 1; state.seq = 1; state.entryLeft = NEVER; state.isFresh = 1; newest = 1;
    copy_state(dump, state);
    do
    :: i < N ->
       at[i].returning = NEVER; at[i].memory = NONE; at[i].link = down; at[i].knownRun = NONE;
       if
       :: i >= N - STARTS_LATE
       :: i < N - STARTS_LATE ->
          at[i].isUp = 1; at[i].link = linked; at[i].known = 1; at[i].era = 1; at[i].knownRun = 0; at[i].lease = LEASE;
          at[i].memory = 0; at[i].isFresh = 1; member[i] = 2 * MEMBERSHIP
       fi;
       if :: i < WRITERS -> write[i].step = idle :: else fi;
       i++
    :: else -> break
    od;
    i = 0;
    do :: i < N -> run Process(i); i++ :: else -> break od;
    run Clock(); run Faults(); run Theorem()
  }
}

