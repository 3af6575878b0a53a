import { optionalPortMachine } from '../optional-port.ts';
import { webhookServerTimeline } from '../timeline.ts';

export const webhookServerMachine = optionalPortMachine({
  id: 'webhook-server',
  description: 'The webhooks of the control plane, which the API server calls.',
  timeline: webhookServerTimeline,
  listening: 'webhooks.listening',
  failed: 'webhooks.failed',
});
