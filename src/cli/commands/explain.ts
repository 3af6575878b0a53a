/** `pilot-discovery explain`: which way a request goes through a proxy, and which lines say so. */
import { Command, Option } from 'commander';
import { type DiscoveryFlags, resolveDiscoveryOptions } from '../../discovery/discovery-options.ts';
import { answerExplain } from '../../discovery/explain/explain-command.ts';
import { ChartpilotError } from '../../runtime/errors.ts';
import { standardError, standardOutput } from '../../runtime/output/standard-streams.ts';

interface ExplainFlags
  extends Pick<DiscoveryFlags, 'configDir' | 'meshConfig' | 'networksConfig' | 'registries' | 'domain' | 'clusterID'> {
  readonly node?: string;
  readonly label: readonly string[];
  readonly metadata: readonly string[];
  readonly from?: string;
  readonly url?: string;
  readonly method?: string;
  readonly header: readonly string[];
  readonly address?: string;
  readonly sni?: string;
  readonly http2?: boolean;
  readonly source?: string;
  readonly principal?: string;
  readonly inbound?: boolean;
  readonly format: 'text' | 'json';
}

const gather = (value: string, before: readonly string[]): readonly string[] => [...before, value];

export function explainCommand(print: (text: string) => void = (text) => standardOutput.print(text)): Command {
  const command = new Command('explain')
    .summary('show the way and outcome of a request, and the lines of configuration behind it')
    .description(
      'Which listener, filter chain, virtual host, route and cluster a request would meet at a proxy, which object and line ' +
        "each came from, and the outcome: status and Envoy's response flag. What an external service or code decides is not " +
        'decided. Without --url: all listeners. The proxy is one that the files would configure, or a running one (--from).',
    );
  command.optionsGroup('The proxy:');
  command
    .option('--configDir <dir>', 'YAML files of Istio and Kubernetes objects, at any depth')
    .option('--node <id>', 'TYPE~IP~NAME.NAMESPACE~NAMESPACE.svc.DOMAIN, TYPE is sidecar or router')
    .option('--label <key=value>', "of the proxy's workload; again for each", gather, [])
    .option('--metadata <key=value>', 'of the node, e.g. INTERCEPTION_MODE=NONE; the value may be JSON', gather, [])
    .option('--from <url>', "a running one: of the control plane (with --node), or of the Envoy's admin interface")
    .option('--meshConfig <file>', 'mesh configuration, default ./etc/istio/config/mesh')
    .option('--networksConfig <file>', 'mesh networks, default ./etc/istio/config/meshNetworks')
    .option('--registries <names>', 'as the control plane is given them, default Kubernetes')
    .option('--domain <suffix>', 'of host names, default cluster.local');
  command.optionsGroup('The request:');
  command
    .option('--url <url>', 'http://, https://, tcp://HOST:PORT or tls://HOST:PORT')
    .option('--method <method>', 'default GET')
    .option('--header <name=value>', 'again for each; Host is one', gather, [])
    .option('--address <ip>', "where it is sent, default: the address of the URL's service, if it has one")
    .option('--sni <name>', "of its TLS, default: the URL's host")
    .option('--http2', 'instead of HTTP/1.1')
    .option('--source <ip>', 'address of the client; policies that match addresses are not decided without it')
    .option(
      '--principal <id>',
      "URI or DNS name in the client's certificate, such as a SPIFFE ID (default: no certificate)",
    )
    .option('--inbound', 'it comes to the workload, instead of from it');
  command.optionsGroup('The answer:');
  command.addOption(new Option('--format <format>', 'how it is printed').choices(['text', 'json']).default('text'));
  return command
    .addHelpText(
      'after',
      '\nExample:\n  pilot-discovery explain --registries= --configDir mesh --node sidecar~10.1.2.3~web-0.shop~shop.svc.cluster.local \\\n' +
        '    --url http://cart.example.com:8080/items --header x-user=anna',
    )
    .action(async (flags: ExplainFlags) => {
      const { text, warnings } = await answerExplain(askedBy(flags));
      for (const warning of warnings) standardError.write(`pilot-discovery: ${warning}\n`);
      print(text);
    });
}

function askedBy({
  node,
  label,
  metadata,
  header,
  configDir,
  ...flags
}: ExplainFlags): Parameters<typeof answerExplain>[0] {
  return {
    ...flags,
    headers: header,
    ...(configDir !== undefined && { files: resolveDiscoveryOptions({ ...flags, configDir }, process.env) }),
    ...(node !== undefined && {
      node: {
        id: node,
        labels: Object.fromEntries(label.map((text) => pair('--label', text))),
        metadata: Object.fromEntries(
          metadata.map((text) => pair('--metadata', text)).map(([key, value]) => [key, jsonOr(value)]),
        ),
      },
    }),
  };
}

function pair(flag: string, text: string): readonly [string, string] {
  const end = text.indexOf('=');
  if (end < 1) throw new ChartpilotError('FLAG_INVALID', `${flag} ${text} must be KEY=VALUE`);
  return [text.slice(0, end), text.slice(end + 1)];
}

/** Lists and maps are written as JSON; anything else is a text, as the agent sends it. */
function jsonOr(text: string): unknown {
  if (!/^[{[]/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
