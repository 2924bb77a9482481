// A violated invariant of the simulation.

export type Invariant =
  | 'no older answer after an acknowledgement'
  | 'no older record is kept as fresh in memory'
  | 'no older record is kept as fresh in Redis'
  | 'every request ends in time'
  | 'every instance is linked again'
  | 'nothing fails unexpectedly';

export class Violation extends Error {
  constructor(
    readonly invariant: Invariant,
    detail: string,
  ) {
    super(`${invariant}: ${detail}`);
  }
}
