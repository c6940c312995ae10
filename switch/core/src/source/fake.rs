//! A second source, for tests: proof that nothing beyond the trait is needed to be one.

use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded};
use tandem_store::model::{Event, KindSet, Link, LinkKind, Object, SourceId};

use super::{Message, Source, SourceError, Status, Write, WriteBack};

/// Its number.
pub(crate) const FAKE: SourceId = SourceId(77);

/// Says what a test tells it to say, and remembers what it was told.
pub(crate) struct FakeSource {
    objects: Vec<Object>,
    sender: Sender<Message>,
    messages: Receiver<Message>,
    written: Arc<Mutex<Vec<Write>>>,
}

impl FakeSource {
    /// With these objects to begin with.
    pub(crate) fn new(objects: Vec<Object>) -> Self {
        let (sender, messages) = bounded(64);
        let fake = Self {
            objects,
            sender,
            messages,
            written: Arc::default(),
        };
        fake.resync();
        fake
    }

    fn send(&self, message: Message) {
        self.sender.try_send(message).unwrap();
    }
}

impl Source for FakeSource {
    fn id(&self) -> SourceId {
        FAKE
    }

    fn name(&self) -> &str {
        "fake"
    }

    fn messages(&self) -> &Receiver<Message> {
        &self.messages
    }

    fn resync(&self) {
        let mut events = vec![Event::BeginSync(FAKE, KindSet::ALL)];
        events.extend(self.objects.iter().map(|o| Event::Upsert(FAKE, o.clone())));
        events.push(Event::EndSync(FAKE));
        self.send(Message::Events(events));
    }

    fn barrier(&self, token: u64) {
        self.send(Message::Barrier(token));
    }

    fn snapshot(&self) -> Result<Vec<Object>, SourceError> {
        Ok(self.objects.clone())
    }

    fn writer(&self) -> Result<Box<dyn WriteBack>, SourceError> {
        Ok(Box::new(FakeWriter(Arc::clone(&self.written))))
    }

    fn status(&self) -> Status {
        Status::default()
    }
}

struct FakeWriter(Arc<Mutex<Vec<Write>>>);

impl WriteBack for FakeWriter {
    fn write(
        &mut self,
        writes: &[Write],
        _failed: &mut dyn FnMut(usize, SourceError),
    ) -> Result<(), SourceError> {
        self.0.lock().unwrap().extend_from_slice(writes);
        Ok(())
    }
}

/// What a consumer does with any source: takes messages up to a barrier.
fn take(source: &dyn Source) -> Vec<Event> {
    source.barrier(5);
    let mut all = Vec::new();
    for message in source.messages().iter() {
        match message {
            Message::Events(events) => all.extend(events),
            Message::Barrier(5) => break,
            _ => {}
        }
    }
    all
}

#[test]
fn a_consumer_needs_the_trait_only() {
    let link = Object::Link(Link {
        ifindex: 9,
        name: "of1".into(),
        kind: LinkKind::Swp { port: 1 },
        master: 0,
        lower: 0,
        promiscuous: false,
        admin_up: true,
        carrier: true,
        mtu: 1500,
        mac: [2, 0, 0, 0, 0, 1],
        bridge_port: None,
        bond_active: false,
        mc_forwarding: false,
    });
    let fake = FakeSource::new(vec![link.clone()]);
    let written = Arc::clone(&fake.written);
    let source: Box<dyn Source> = Box::new(fake);
    let events = take(&*source);
    assert_eq!(events.len(), 3);
    assert_eq!(
        events.first(),
        Some(&Event::BeginSync(source.id(), KindSet::ALL))
    );
    assert_eq!(events.get(1), Some(&Event::Upsert(FAKE, link.clone())));
    source.resync();
    assert_eq!(take(&*source), events);
    assert_eq!(source.snapshot().unwrap(), vec![link]);
    let learned = Write::FdbLearned {
        ifindex: 9,
        mac: [2, 0, 0, 0, 0, 2],
        vlan: 0,
    };
    let mut writer = source.writer().unwrap();
    writer.write(&[learned], &mut |_, e| panic!("{e}")).unwrap();
    assert_eq!(*written.lock().unwrap(), vec![learned]);
    let mut store = tandem_store::Store::new(tandem_store::Config::default());
    for event in events {
        store.apply(event, 0);
    }
}
