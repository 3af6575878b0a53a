/** Usage: node helloworld.ts VERSION. `/hello` responds with the version, or `$SERVICE_VERSION`, and the name of the pod. */
import { serve } from './server.ts';

const version = process.env.SERVICE_VERSION ?? process.argv[2];

serve(5000, ({ url }) => {
  if (url.pathname === '/hello') return { body: `Hello version: ${version}, instance: ${process.env.HOSTNAME}\n` };
  return url.pathname === '/health' ? { body: 'Helloworld is healthy' } : { status: 404 };
});
