// Entry point of the image, of the systemd unit and of `npm start`: the same as `handle-resolver-proxy serve`.
import { run } from './process/run.js';

await run();
