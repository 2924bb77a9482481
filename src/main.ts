// The program `handle-resolver-proxy`.
import { run } from './process/run.js';

await run();
