// The site of the documentation in a real Chromium: read at three widths, searched, and nothing asked of anybody else.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createReadStream, existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { chromium } from 'playwright-core';
import { browserPath, root } from './support.js';

const kinds = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.png': 'image/png', '.json': 'application/json' };
let folder, server, browser, address;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'mydyno-site-'));
  execFileSync(join(root, 'scripts', 'site'), ['--out', join(folder, 'site')], { stdio: ['ignore', 'ignore', 'inherit'] });
  server = createServer((request, response) => {
    const path = join(folder, 'site', decodeURIComponent(new URL(request.url, 'http://site').pathname));
    const file = existsSync(path) && statSync(path).isDirectory() ? join(path, 'index.html') : path;
    if (!existsSync(file)) return response.writeHead(404).end();
    response.writeHead(200, { 'content-type': kinds[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file).pipe(response);
  });
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${server.address().port}`;
  browser = await chromium.launch({ executablePath: browserPath(), args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'] });
});
after(async () => {
  await browser?.close();
  server?.close();
  if (folder) rmSync(folder, { recursive: true });
});

async function withPage(path, options, work) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const elsewhere = [];
  page.on('request', request => { if (!request.url().startsWith(address) && !request.url().startsWith('data:')) elsewhere.push(request.url()); });
  try {
    await page.goto(address + path);
    await page.waitForLoadState('networkidle');
    await work(page);
    assert.deepEqual(elsewhere, []);
  } finally {
    await context.close();
  }
}

for (const path of ['/index.html', '/tutorial.html', '/howto/slow-server.html', '/guides/audit.html', '/reference/commands.html', '/verdicts/index.html']) {
  test(`${path} fits three widths and asks nobody else for anything`, async () => {
    for (const width of [1280, 768, 390]) {
      await withPage(path, { viewport: { width, height: 844 } }, async page => {
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `the page is ${wide} wide on a screen of ${width}`);
        if (process.env.SHOTS) {
          mkdirSync(process.env.SHOTS, { recursive: true });
          await page.screenshot({ path: join(process.env.SHOTS, `site${path.replaceAll('/', '-')}-${width}.png`) });
        }
      });
    }
  });
}

test('a search finds a page by its words', async () => {
  await withPage('/index.html', {}, async page => {
    await page.keyboard.press('s');
    await page.locator('#mdbook-searchbar').fill('emulated disk');
    const first = page.locator('#mdbook-searchresults a').first();
    await first.waitFor();
    assert.match(await page.locator('#mdbook-searchresults').textContent(), /Emulated disks and crashes/);
    await first.click();
    await page.waitForLoadState('networkidle');
    assert.ok(page.url().startsWith(address));
  });
});
