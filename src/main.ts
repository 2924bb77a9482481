// The program: reads the configuration, serves, stops on a signal.
import { start } from './process/start.js';

await start();
