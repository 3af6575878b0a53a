/** The tasks of Istio's section "Traffic Management" that route requests within the mesh. */
import { percent } from '../../demo/findings.ts';
import { podsOf, readyPods } from '../workloads.ts';
import { countOf, countsText, type Task, type TaskContext } from './context.ts';
import { deployment } from './sample-files.ts';
import { httpbinImage } from './sample-images.ts';

const networking = 'bookinfo-networking';
const page = 'http://productpage:9080/productpage';
const reviews = 'http://reviews:9080/reviews/0';

const starsOf = (html: string): string => {
  if (html.includes('product reviews are currently unavailable')) return 'no reviews';
  if (html.includes('Ratings service is currently unavailable')) return 'no ratings';
  const color = /<font color="(\w+)">/.exec(html)?.[1];
  if (color !== undefined) return `${color} stars`;
  return html.includes('Reviews served by') ? 'no stars' : 'no page';
};

/**
 * Signs in.
 * @returns arguments with the user's cookie
 */
async function signIn(tasks: TaskContext, user: string): Promise<string[]> {
  const jar = `/tmp/${user}.cookies`;
  await tasks.curl(['-c', jar, '-d', `username=${user}&passwd=`, 'http://productpage:9080/login']);
  return ['-b', jar];
}

const starsOfPages = async (tasks: TaskContext, count: number, args: readonly string[] = []) =>
  countOf((await tasks.bodies(`${page}?u=[1-${count}]`, args)).map(starsOf));

/** Waits until all pages show these stars. */
async function allPages(tasks: TaskContext, user: string, args: readonly string[], expected: string): Promise<void> {
  const count = 10;
  await tasks.converges(`${count} pages of ${user}`, `${expected}: ${count}`, () => starsOfPages(tasks, count, args), {
    isExpected: (counts) => counts[expected] === count,
    describe: countsText,
  });
}

export const requestRouting: Task = {
  name: 'request-routing',
  page: 'tasks/traffic-management/request-routing',
  needs: ['curl', 'bookinfo'],
  async run(tasks) {
    await tasks.converges('pages before any rule', 'all three versions', () => starsOfPages(tasks, 12), {
      isExpected: (counts) => ['no stars', 'black stars', 'red stars'].every((stars) => counts[stars]),
      describe: countsText,
    });
    await tasks.applySample(`${networking}/destination-rule-all.yaml`);
    await tasks.applySample(`${networking}/virtual-service-all-v1.yaml`);
    await allPages(tasks, 'anyone', [], 'no stars');
    await tasks.applySample(`${networking}/virtual-service-reviews-test-v2.yaml`);
    await allPages(tasks, 'jason', await signIn(tasks, 'jason'), 'black stars');
    await allPages(tasks, 'bob', await signIn(tasks, 'bob'), 'no stars');
  },
};

const versionOf = (body: string): string => {
  const { color } = (JSON.parse(body) as { reviews: { rating?: { color?: string } }[] }).reviews[0]?.rating ?? {};
  return color === undefined ? 'v1' : color === 'black' ? 'v2' : 'v3';
};

/** Four standard deviations of a share of random choices. */
const tolerance = (share: number, requests: number): number => 4 * Math.sqrt((share * (1 - share)) / requests);

async function shareOf(tasks: TaskContext, version: string, share: number): Promise<void> {
  const requests = 400;
  const margin = tolerance(share, requests);
  const expected = `${percent(share)} ± ${percent(margin)}`;
  const countVersions = async () => countOf((await tasks.bodies(`${reviews}?u=[1-${requests}]`)).map(versionOf));
  await tasks.converges(`share of ${version} in ${requests} requests`, expected, countVersions, {
    isExpected: (counts) =>
      Math.abs((counts[version] ?? 0) / requests - share) <= margin && Object.keys(counts).length < 3,
    describe: countsText,
  });
}

export const trafficShifting: Task = {
  name: 'traffic-shifting',
  page: 'tasks/traffic-management/traffic-shifting',
  needs: ['curl', 'bookinfo'],
  async run(tasks) {
    await tasks.applySample(`${networking}/destination-rule-all.yaml`);
    await tasks.applySample(`${networking}/virtual-service-all-v1.yaml`);
    await shareOf(tasks, 'v1', 1);
    await tasks.applySample(`${networking}/virtual-service-reviews-50-v3.yaml`);
    await shareOf(tasks, 'v3', 0.5);
    await tasks.applySample(`${networking}/virtual-service-reviews-v3.yaml`);
    await shareOf(tasks, 'v3', 1);
    await tasks.delete('VirtualService', 'reviews');
    await tasks.applySample('bookinfo-gateway-api/route-reviews-90-10.yaml');
    await shareOf(tasks, 'v2', 0.1);
  },
};

/** Returns the seconds until the page is complete, and its stars. */
async function timedPage(tasks: TaskContext, args: readonly string[]): Promise<{ seconds: number; stars: string }> {
  const { seconds, body } = await tasks.curl([...args, page]);
  return { seconds, stars: starsOf(body) };
}

async function pageWithin(
  tasks: TaskContext,
  description: string,
  args: readonly string[],
  expected: { readonly stars: string; readonly from: number; readonly to: number },
): Promise<void> {
  const { stars, from, to } = expected;
  await tasks.converges(description, `${stars}, ${from}–${to} s`, () => timedPage(tasks, args), {
    isExpected: (result) => result.stars === stars && result.seconds >= from && result.seconds <= to,
    describe: (result) => `${result.stars}, ${result.seconds.toFixed(2)} s`,
  });
}

export const faultInjection: Task = {
  name: 'fault-injection',
  page: 'tasks/traffic-management/fault-injection',
  needs: ['curl', 'bookinfo'],
  async run(tasks) {
    await tasks.applySample(`${networking}/destination-rule-all.yaml`);
    await tasks.applySample(`${networking}/virtual-service-all-v1.yaml`);
    await tasks.applySample(`${networking}/virtual-service-reviews-test-v2.yaml`);
    const jason = await signIn(tasks, 'jason');
    await allPages(tasks, 'jason without a fault', jason, 'black stars');
    await tasks.applySample(`${networking}/virtual-service-ratings-test-delay.yaml`);
    // The page waits twice for 3 s for the reviews, whose ratings are delayed by 7 s.
    await pageWithin(tasks, 'delay of 7 s: page of jason', jason, { stars: 'no reviews', from: 5.9, to: 8 });
    await pageWithin(tasks, 'delay of 7 s: page of others', [], { stars: 'no stars', from: 0, to: 2 });
    await tasks.applySample(`${networking}/virtual-service-ratings-test-abort.yaml`);
    await pageWithin(tasks, 'abort with 500: page of jason', jason, { stars: 'no ratings', from: 0, to: 2 });
    await pageWithin(tasks, 'abort with 500: page of others', [], { stars: 'no stars', from: 0, to: 2 });
  },
};

const virtualService = (name: string, http: string): string => `
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: { name: ${name} }
spec: { hosts: [${name}], http: [${http}] }
`;

export const requestTimeouts: Task = {
  name: 'request-timeouts',
  page: 'tasks/traffic-management/request-timeouts',
  needs: ['curl', 'bookinfo'],
  async run(tasks) {
    await tasks.applySample(`${networking}/destination-rule-all.yaml`);
    await tasks.applySample(`${networking}/virtual-service-all-v1.yaml`);
    const toReviews = 'route: [{ destination: { host: reviews, subset: v2 } }]';
    await tasks.apply(virtualService('reviews', `{ ${toReviews} }`));
    const delay = 'fault: { delay: { percentage: { value: 100 }, fixedDelay: 2s } }';
    await tasks.apply(
      virtualService('ratings', `{ ${delay}, route: [{ destination: { host: ratings, subset: v1 } }] }`),
    );
    await pageWithin(tasks, 'ratings 2 s late', [], { stars: 'black stars', from: 2, to: 4 });
    await tasks.apply(virtualService('reviews', `{ ${toReviews}, timeout: 0.5s }`));
    // The page requests the reviews twice.
    await pageWithin(tasks, 'timeout of 0.5 s', [], { stars: 'no reviews', from: 1, to: 1.9 });
  },
};

const httpbinSubsets = `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: { name: httpbin }
spec:
  host: httpbin
  subsets: [{ name: v1, labels: { version: v1 } }, { name: v2, labels: { version: v2 } }]
`;

export const mirroring: Task = {
  name: 'mirroring',
  page: 'tasks/traffic-management/mirroring',
  needs: ['curl', 'httpbin'],
  async run(tasks) {
    await tasks.apply(JSON.stringify(deployment({ app: 'httpbin', version: 'v2', image: httpbinImage, port: 8080 })));
    const pods = await readyPods(tasks.node, 'httpbin', 2);
    const toV1 = 'route: [{ destination: { host: httpbin, subset: v1 }, weight: 100 }]';
    await tasks.apply(httpbinSubsets);
    await tasks.apply(virtualService('httpbin', `{ ${toV1} }`));
    const requests = 10;
    let round = 0;
    /** Counts requests with a certain path, by version and host. */
    const countReceived = async () => {
      const path = `anything/${round++}`;
      await tasks.statuses(`http://httpbin:8000/${path}?u=[1-${requests}]`);
      // A mirrored request is sent without waiting for its response.
      await tasks.exec('curl', ['sleep', '0.5']);
      const lines = await Promise.all(
        pods.map(async ({ metadata }) => {
          const log = await tasks.logs(metadata.name, 'httpbin');
          const matchingLines = log.split('\n').filter((line) => line.includes(`/${path}?`));
          return matchingLines.map((line) => `${metadata.labels?.version} ${/host=(\S+)/.exec(line)?.[1]}`);
        }),
      );
      return countOf(lines.flat());
    };
    const isExactly = (expected: string) => ({
      isExpected: (counts: Readonly<Record<string, number>>) => countsText(counts) === expected,
      describe: countsText,
    });
    const all = `v1 httpbin:8000: ${requests}`;
    await tasks.converges('requests by version and host', all, countReceived, isExactly(all));
    const mirror = 'mirror: { host: httpbin, subset: v2 }, mirrorPercentage: { value: 100 }';
    await tasks.apply(virtualService('httpbin', `{ ${toV1}, ${mirror} }`));
    const mirrored = `${all}, v2 httpbin-shadow:8000: ${requests}`;
    await tasks.converges('with a mirror', mirrored, countReceived, isExactly(mirrored));
    const statuses = await tasks.statuses(`http://httpbin:8000/status/418?u=[1-${requests}]`);
    tasks.record(
      'the client gets one response for each request',
      countsText(statuses),
      `418: ${requests}`,
      statuses['418'] === requests,
    );
    await tasks.delete('Deployment', 'httpbin-v2');
    await tasks.converges('pods of v2 at the end', '0', async () => (await podsOf(tasks.node, 'httpbin')).length - 1, {
      isExpected: (count) => count === 0,
    });
  },
};
