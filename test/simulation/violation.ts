// A violated invariant of the simulation.

export type Invariant =
  | 'no older answer after an acknowledgement'
  | 'no older answer while only the Handle server fails'
  | 'no older answer of a cache in front'
  | 'no older record is kept as fresh in memory'
  | 'no older record is kept as fresh in Redis'
  | 'every request ends in time'
  | 'every instance is linked again'
  | 'each instance has a lease after the last fault'
  | 'each instance acknowledges writes after the last fault'
  | 'each instance serves the newest record after the last fault'
  | 'each instance keeps the records that it reads after the last fault'
  | 'each instance works after the last fault'
  | 'each instance runs after the last fault'
  | 'no conditional write undoes another'
  | 'no change is missing without a gap'
  | 'each instance records its changes in the end'
  | 'changes of an instance come in their order'
  | 'a list has every acknowledged write'
  | 'the mirror has the newest record after its interval'
  | 'nothing fails unexpectedly';

export class Violation extends Error {
  constructor(
    readonly invariant: Invariant,
    detail: string,
  ) {
    super(`${invariant}: ${detail}`);
  }
}
