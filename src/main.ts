// The program: reads the configuration, serves, stops on a signal.
import { start } from './start.js';

await start();
