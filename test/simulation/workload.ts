// The client load: mostly reads, some writes, few authoritative reads and purges. Each acknowledgement
// triggers a read on every instance.
import type { Random } from './random.js';
import type { Target } from './requests.js';
import type { World } from './world.js';

const READ_EVERY_MS = 60;
const WRITE_EVERY_MS = 700;
const CONDITIONAL_EVERY_MS = 1400;
const AUTHORITY_EVERY_MS = 4000;
const PURGE_EVERY_MS = 8000;
const LIST_EVERY_MS = 500;
const READS_AFTER_WITHIN_MS = 30;
const REFRESH_AFTER_WRITE = 0.2;

export class Workload {
  readonly #world: World;
  readonly #random: Random;
  #isOver = false;

  constructor(world: World) {
    this.#world = world;
    this.#random = world.simulation.random.stream('workload');
  }

  start(): void {
    this.#every(READ_EVERY_MS, 'a reader', () => {
      this.#at((target) => {
        this.#world.requests.read(target);
      });
    });
    this.#every(WRITE_EVERY_MS, 'a writer', () => {
      this.#at((target) => {
        this.#write(target);
      });
    });
    this.#every(CONDITIONAL_EVERY_MS, 'a conditional writer', () => {
      this.#at((target) => {
        this.#write(target, true);
      });
    });
    this.#every(AUTHORITY_EVERY_MS, 'a reader of the authority', () => {
      this.#at((target) => {
        if (this.#random.chance(0.5)) this.#world.requests.read(target, true);
        else this.#world.requests.refresh(target);
      });
    });
    this.#every(PURGE_EVERY_MS, 'an operator', () => {
      this.#at((target) => {
        const prefix = this.#random.chance(0.5)
          ? target.handle.slice(0, this.#random.integer(3, 6))
          : undefined;
        this.#world.requests.purge(target, this.#random.chance(0.5), prefix);
      });
    });
    this.#startPlugins();
    if (this.#world.front)
      this.#every(READ_EVERY_MS, 'a reader of the front', () => {
        this.#at((target) => this.#world.front?.read(target));
      });
  }

  /** Starts what only instances with plugins do. */
  #startPlugins(): void {
    if (this.#world.changes === undefined) return;
    this.#world.changes.start();
    this.#every(LIST_EVERY_MS, 'a reader of lists', () => {
      this.#at((target) => {
        this.#world.requests.list(target);
      });
    });
  }

  stop(): void {
    this.#isOver = true;
  }

  #write(target: Target, isConditional = false): void {
    const onAcknowledged = (): void => {
      // Loads are in flight on all instances at this time.
      if (this.#random.chance(REFRESH_AFTER_WRITE))
        this.#world.after(this.#random.between(0, READS_AFTER_WITHIN_MS), 'a refresh after a write', () => {
          if (this.#isOver) return;
          this.#at(({ instance, server }) => {
            this.#world.requests.refresh({ ...target, instance, server });
          });
        });
      for (const instance of this.#world.instances) {
        const { server } = instance;
        if (server === undefined) continue;
        this.#world.after(this.#random.between(0, READS_AFTER_WITHIN_MS), 'a reader after a write', () => {
          this.#world.requests.read({ ...target, instance, server });
          this.#world.requests.list({ instance, server });
          this.#world.front?.read({ ...target, instance, server });
        });
      }
    };
    this.#world.requests.write(target, onAcknowledged, isConditional);
  }

  #every(meanMs: number, label: string, run: () => void): void {
    const again = (): void => {
      this.#world.after(this.#random.between(0, 2 * meanMs), label, () => {
        if (this.#isOver) return;
        run();
        again();
      });
    };
    again();
  }

  #at(run: (target: Target) => void): void {
    const instance = this.#random.pick(this.#world.instances);
    const handle = this.#random.pick(this.#world.handles);
    const { server } = instance;
    if (server !== undefined) run({ instance, handle, server });
  }
}
