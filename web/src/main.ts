// The page: one document in, one application out. The page of `clearhead explain` carries its document in a script
// element; the browser window calls `show` with one it was given.
import { mount } from 'svelte';
import App from './App.svelte';
import { unpack, type PageData } from './lib/document';
import './page.css';

export async function show(target: Element, data: PageData): Promise<void> {
  const journey = await unpack(data);
  mount(App, { target, props: { journey } });
}

const carried = document.getElementById('clearhead-data');
const target = document.getElementById('clearhead-app');
if (carried && target) void show(target, JSON.parse(carried.textContent ?? '') as PageData);
