/** Worker of a {@link SearchThread}: receives batches and returns their results. */
import { parentPort } from 'node:worker_threads';
import { randomAgent } from '../simulation/random-effects.ts';
import { searchSchedules } from '../simulation/random-search.ts';
import type { SearchBatch } from './search-thread.ts';

const agent = randomAgent();

parentPort?.on('message', (batch: SearchBatch) => parentPort?.postMessage(searchSchedules({ ...batch, agent })));
