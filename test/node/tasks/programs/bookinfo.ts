/**
 * The four services of the bookstore sample, on port 9080: productpage, details, reviews (v1 without ratings, v2 with black, v3 with red stars) and
 * ratings. Timeouts and messages match the documented tasks. Usage: node bookinfo.ts SERVICE VERSION
 */
import { get, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Request, type Response, serve } from './server.ts';

const [service = '', version = 'v1'] = process.argv.slice(2);
const port = 9080;

/** Headers of the user's request that each service forwards. */
const forwarded = ['x-request-id', 'traceparent', 'tracestate', 'end-user', 'user-agent', 'cookie', 'authorization'];

function forwardedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  return Object.fromEntries(forwarded.flatMap((name) => (headers[name] ? [[name, String(headers[name])]] : [])));
}

/** @throws Error if there is no response with status 200 within the time */
async function fetchJson(url: string, headers: Record<string, string>, timeoutMs: number): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const clientRequest = get(url, { headers, signal: AbortSignal.timeout(timeoutMs) }, (response) => {
    const { statusCode } = response;
    if (statusCode === 200) text(response).then((body) => resolve(JSON.parse(body)), reject);
    else {
      response.resume();
      reject(new Error(`${url} responded with ${statusCode}`));
    }
  });
  clientRequest.on('error', reject);
  return promise;
}

const books = [{ id: 0, title: 'The Comedy of Errors', descriptionHtml: 'A play by William Shakespeare.' }];

const details = (id: number): object => ({
  ...{ id, author: 'William Shakespeare', year: 1595, type: 'paperback', pages: 200, publisher: 'PublisherA' },
  ...{ language: 'English', 'ISBN-10': '1234567890', 'ISBN-13': '123-1234567890' },
});

const ratingsOf = (id: number): object => ({ id, ratings: { Reviewer1: 5, Reviewer2: 4 } });

const colors: Readonly<Record<string, string>> = { v2: 'black', v3: 'red' };

interface Rating {
  readonly stars?: number;
  readonly color?: string;
  readonly error?: string;
}

async function reviewsOf(id: number, headers: Record<string, string>): Promise<object> {
  const color = colors[version];
  let ratings: Record<string, number> | undefined;
  if (color !== undefined) {
    const timeoutMs = color === 'black' ? 10_000 : 2_500;
    const response = fetchJson(`http://ratings:${port}/ratings/${id}`, headers, timeoutMs);
    ratings = await response.then(
      (body) => (body as { ratings: Record<string, number> }).ratings,
      () => undefined,
    );
  }
  const review = (reviewer: string, content: string): object => {
    if (color === undefined) return { reviewer, text: content };
    const stars = ratings?.[reviewer];
    const rating: Rating =
      stars === undefined ? { error: 'Ratings service is currently unavailable' } : { stars, color };
    return { reviewer, text: content, rating };
  };
  const reviews = [review('Reviewer1', 'Funny from start to end.'), review('Reviewer2', 'Hard to follow.')];
  return { id: String(id), podname: process.env.HOSTNAME, clustername: 'null', reviews };
}

interface Reviews {
  readonly podname: string;
  readonly reviews: readonly { readonly reviewer: string; readonly text: string; readonly rating?: Rating }[];
}

const reviewAttempts = 2;
const attemptTimeoutMs = 3_000;

async function fetchReviews(id: number, headers: Record<string, string>): Promise<Reviews | undefined> {
  for (let attempt = 0; attempt < reviewAttempts; attempt++) {
    try {
      return (await fetchJson(`http://reviews:${port}/reviews/${id}`, headers, attemptTimeoutMs)) as Reviews;
    } catch {}
  }
  return undefined;
}

function ratingHtml({ stars = 0, color, error }: Rating): string {
  if (error !== undefined) return `<i>${error}</i>`;
  return `<font color="${color}">${'<span class="star">&#9733;</span>'.repeat(stars)}</font>`;
}

async function productPage(user: string | undefined, headers: Record<string, string>): Promise<string> {
  const [reviews, book] = await Promise.all([
    fetchReviews(0, headers),
    fetchJson(`http://details:${port}/details/0`, headers, attemptTimeoutMs).catch(() => undefined),
  ]);
  const reviewsHtml = reviews
    ? reviews.reviews.map(
        ({ reviewer, text: content, rating }) =>
          `<blockquote>${content} <small>${reviewer}</small>${rating ? ratingHtml(rating) : ''}</blockquote>`,
      )
    : [
        '<h4>Error fetching product reviews!</h4><p>Sorry, product reviews are currently unavailable for this book.</p>',
      ];
  const detailsHtml = book
    ? `<h4>Book Details</h4><pre>${JSON.stringify(book)}</pre>`
    : '<h4>Error fetching product details!</h4><p>Sorry, product details are currently unavailable for this book.</p>';
  const htmlParts = [
    ...['<!DOCTYPE html>', '<html><head><title>Simple Bookstore App</title></head><body>'],
    ...[`<p>${user ?? 'Sign in'}</p>`, `<h3>${books[0]!.title}</h3>`, detailsHtml, '<h4>Book Reviews</h4>'],
    ...[`<p>Reviews served by: ${reviews?.podname ?? ''}</p>`, ...reviewsHtml, '</body></html>'],
  ];
  return `${htmlParts.join('\n')}\n`;
}

async function respondAsProductPage({ method, url, message, body }: Request): Promise<Response> {
  const user = /(?:^|; )session=(\w+)/.exec(message.headers.cookie ?? '')?.[1];
  const headers = { ...forwardedHeaders(message.headers), ...(user !== undefined && { 'end-user': user }) };
  const redirect = (cookie: string): Response => ({
    ...{ status: 302, headers: { location: '/productpage', 'set-cookie': `${cookie}; Path=/; HttpOnly` } },
  });
  const [id, subresource] = /^\/api\/v1\/products\/(\d+)(?:\/(\w+))?$/.exec(url.pathname)?.slice(1) ?? [];
  if (id !== undefined && subresource === undefined)
    return { body: await fetchJson(`http://details:${port}/details/${id}`, headers, attemptTimeoutMs) };
  if (subresource === 'reviews') return unavailable(await fetchReviews(Number(id), headers), 'reviews');
  if (subresource === 'ratings') {
    const ratings = fetchJson(`http://ratings:${port}/ratings/${id}`, headers, attemptTimeoutMs);
    return unavailable(await ratings.catch(() => undefined), 'ratings');
  }
  switch (url.pathname) {
    case '/productpage':
      return { body: await productPage(user, headers) };
    case '/login': {
      const name = new URLSearchParams(body).get('username') ?? '';
      return method === 'POST' && /^\w+$/.test(name) ? redirect(`session=${name}`) : { status: 400 };
    }
    case '/logout':
      return redirect('session=; Max-Age=0');
    case '/api/v1/products':
      return { body: books };
    default:
      return { status: 404 };
  }
}

function unavailable(value: unknown, description: string): Response {
  if (value !== undefined) return { body: value };
  return { status: 500, body: { error: `Sorry, product ${description} are currently unavailable for this book.` } };
}

function respondAsPart({ url, message }: Request): Response | Promise<Response> {
  const [, name, id] = url.pathname.split('/');
  if (name !== service || !/^\d+$/.test(id ?? '')) return { status: 404 };
  if (service === 'details') return { body: details(Number(id)) };
  if (service === 'ratings') return { body: ratingsOf(Number(id)) };
  return reviewsOf(Number(id), forwardedHeaders(message.headers)).then((body) => ({ body }));
}

serve(port, (request) => {
  if (request.url.pathname === '/health') return { body: { status: 'healthy' } };
  return service === 'productpage' ? respondAsProductPage(request) : respondAsPart(request);
});
