/**
 * Runs the sample service: `node test/sample/main.ts --version v1 [--port N] [--host ADDRESS]`. Prints `ready PORT`.
 */
import { parseArgs } from 'node:util';
import { startSampleService } from './sample-service.ts';

const { values } = parseArgs({
  options: {
    version: { type: 'string', default: 'v1' },
    port: { type: 'string', default: '0' },
    host: { type: 'string' },
  },
});
const service = await startSampleService({ ...values, port: Number(values.port) });
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void service.close());
process.stdout.write(`ready ${service.port}\n`);
