import { optionalPortMachine } from '../optional-port.ts';
import { nameServerTimeline } from '../timeline.ts';

export const nameServerMachine = optionalPortMachine({
  id: 'name-server',
  description: 'The DNS server of the control plane.',
  timeline: nameServerTimeline,
  listening: 'names.listening',
  failed: 'names.failed',
});
